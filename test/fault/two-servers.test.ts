import { expect, test } from 'bun:test'
import { join } from 'node:path'
import { runPlantstore, serve } from '../support/executable.ts'
import { makeFolder } from '../support/folder.ts'
import type { Random } from '../support/random.ts'
import { lacks } from '../support/requirement.ts'
import { STRACE } from '../support/strace.ts'
import { createTokenIn } from '../support/tokens.ts'
import { startHistory } from './history.ts'
import { type Load, startLoad } from './load.ts'
import { ROUNDS_TIMEOUT_MS, rounds, runRounds } from './rounds.ts'
import { until } from './watch.ts'

/** What is tried one after the other while both servers write. */
const STEPS = rounds(1, 10)
const GUEST_PLANTS = rounds(4, 20)
/** Of each of the two loads. */
const CONNECTIONS = rounds(16, 64)
/** Successes of each server, in each step, that show that both write. */
const ENOUGH = 50

/** Creates at about the same time at both servers, and how much later the second of a pair is sent at most. */
const PAIRS = rounds(60, 200)
const PAIR_PAUSE_MAX_MS = 8
/** Makes what is done with locks slow. strace runs beside the server, which keeps its signals and its exit code. */
const SLOW_LOCKS = 'strace -D -f --seccomp-bpf -o /dev/null -e trace=fcntl -e inject=fcntl:delay_exit=1000'.split(' ')

type Server = Awaited<ReturnType<typeof serve>>

test(
  'two servers on one database and commands beside them do all that is asked, and see at once what any of them wrote',
  () => runRounds(rounds(1, 10), (random) => workTogether(random)),
  ROUNDS_TIMEOUT_MS,
)

test.skipIf(lacks(STRACE))(
  'a commit that comes just when another server is done with its own is seen by that one, too',
  () => runRounds(rounds(1, 10), (random) => commitSideBySide(random)),
  ROUNDS_TIMEOUT_MS,
)

/** Has two servers commit at about the same time, again and again, one of them long in letting go of the lock. */
async function commitSideBySide(random: Random): Promise<void> {
  using folder = makeFolder()
  const database = join(folder.path, 'plantstore.db')
  const token = await createTokenIn(database)
  const guest = await createTokenIn(database, 'guest')
  await using slow = await serve(database, ['--access-log', 'off'], { under: SLOW_LOCKS })
  await using fast = await serve(database, ['--access-log', 'off'])
  const names: string[] = []
  let atOnce = 0

  for (let id = 1; id <= PAIRS; id++) {
    let isOver = false
    const own = slow.request('POST', '/plants', { token, body: { id, name: 'Fern' } }).then(({ status }) => {
      isOver = true
      return status
    })
    await Bun.sleep(random(PAIR_PAUSE_MAX_MS))
    const { status } = await fast.request('POST', '/plants', { token: guest, body: { id, name: `guest ${id}` } })
    if (!isOver) atOnce++
    names.push(`guest ${id}`)
    expect([status, await own]).toEqual([200, 200])
    expect(await listTwice(slow, guest)).toEqual(names)
  }
  expect(atOnce).toBeGreaterThan(0)
  expect(await slow.end()).toBe(0)
}

/** Has two servers write under load, with each other and with commands. */
async function workTogether(random: Random): Promise<void> {
  using folder = makeFolder()
  const database = join(folder.path, 'plantstore.db')
  const token = await createTokenIn(database)
  // One history, so that what one server creates the other deletes.
  const history = startHistory()
  await using one = await serve(database, ['--access-log', 'off'])
  await using other = await serve(database, ['--access-log', 'off'])
  const servers = [one, other]
  // Alone first: a server that writes all the time learns of others by its own writes, too.
  await useGuest(database, servers)
  const loads = servers.map(({ url }) => startLoad({ url, token, history, random, connections: CONNECTIONS }))

  for (let step = 1; step <= STEPS; step++) {
    const before = loads.map(countSuccesses)
    await useGuest(database, servers)
    await until('both servers write', () =>
      loads.every((load, index) => countSuccesses(load) > (before[index] ?? 0) + ENOUGH),
    )
  }
  for (const load of loads) await load.stop()

  for (const load of loads) expect([...load.statuses().keys()].sort()).toEqual([200, 204])
  const [listed, otherListed] = await Promise.all(servers.map((server) => list(server, token)))
  expect(listed).toEqual(otherListed)
  history.check(database)
  expect(await one.end()).toBe(0)
  expect(await other.end()).toBe(0)
  expect(one.stderr() + other.stderr()).toBe('')
  history.check(database)
}

/** Makes a user by commands, has both servers work for them, and takes all of it away again. */
async function useGuest(database: string, servers: readonly Server[]): Promise<void> {
  const token = (await run(database, 'token create --user guest')).stdout.trim()
  const stored: string[] = []
  for (let count = 1; count <= GUEST_PLANTS; count++) {
    const [writing, reading] = count % 2 === 0 ? servers : servers.toReversed()
    // Below the ids of the history, which judges no plants but its own.
    const plant = { id: -count, name: `guest ${count}` }
    expect((await writing?.request('POST', '/plants', { token, body: plant }))?.status).toBe(200)
    expect(await listTwice(reading, token)).toEqual([plant.name, ...stored])
    // Of each four one is deleted where it was created, one where it was not.
    const deleting = [undefined, writing, undefined, reading][count % 4]
    if (deleting === undefined) stored.unshift(plant.name)
    else expect((await deleting.request('DELETE', `/plants/${plant.id}`, { token })).status).toBe(204)
    expect(await Promise.all(servers.map((server) => listTwice(server, token)))).toEqual([stored, stored])
  }

  const [described] = JSON.parse((await run(database, 'token list --user guest --json')).stdout)
  expect(described).toMatchObject({ user: 'guest', state: 'active' })
  expect((await run(database, 'user list')).stdout).toMatch(new RegExp(`^guest +${stored.length} +1 `, 'm'))
  expect((await run(database, 'check')).stderr).toEndWith('is whole.\n')
  await run(database, `token revoke ${described.id}`)
  const refused = await Promise.all(servers.map((server) => server.request('GET', '/plants', { token })))
  expect(await Promise.all(refused.map((answer) => answer.json()))).toMatchObject([{ error: 40102 }, { error: 40102 }])
  const { stderr } = await run(database, 'user delete guest --yes')
  expect(stderr).toBe(`Deleted user guest with 1 token and ${stored.length} plants.\n`)
}

/** Runs a command to its end, which must be a good one. */
async function run(database: string, command: string) {
  const { exitCode, ...streams } = await runPlantstore([...command.split(' '), '--database', database])
  expect({ command, exitCode, stderr: streams.stderr }).toEqual({ command, exitCode: 0, stderr: expect.any(String) })
  return streams
}

/** The same read from the database and, where the server remembers lists, as it remembers this one. */
async function listTwice(server: Server | undefined, token: string): Promise<string[]> {
  const [names = [], remembered] = await Promise.all([list(server, token), list(server, token, '?limit=1000')])
  expect(remembered).toEqual(names)
  return names
}

/** The names of the plants that a token sees. */
async function list(server: Server | undefined, token: string, query = ''): Promise<string[]> {
  const text = await (await server?.request('GET', `/plants${query}`, { token }))?.text()
  return JSON.parse(text ?? '').map(({ name }: { readonly name: string }) => name)
}

const countSuccesses = (load: Load): number => (load.statuses().get(200) ?? 0) + (load.statuses().get(204) ?? 0)
