import { expect } from 'bun:test'
import { OTHERS_SEEN_WITHIN_MS } from '../../src/domain/store.ts'
import { runPlantstore } from '../support/executable.ts'
import type { Random } from '../support/random.ts'
import { STRACE } from '../support/strace.ts'
import { createTokenIn } from '../support/tokens.ts'
import { until } from '../support/until.ts'
import { rounds, testRounds } from './rounds.ts'
import { makeTestDatabase, QUIET, type Server } from './test-database.ts'

/** Sequences of commands, one after the other, while both servers write. */
const STEPS = rounds(1, 10)
const GUEST_PLANTS = rounds(4, 20)
/** Of each of the two loads. */
const CONNECTIONS = rounds(16, 64)
/** Whole answers of each server in each step that show that both write. */
const ENOUGH = 50

/** Pairs of creates at both servers, and the most time between the creates of a pair. */
const PAIRS = rounds(60, 200)
const PAIR_PAUSE_MAX_MS = 8
/** Makes calls on locks slow. strace runs beside the server, which keeps its signals and its exit code. */
const SLOW_LOCKS = 'strace -D -f --seccomp-bpf -o /dev/null -e trace=fcntl -e inject=fcntl:delay_exit=1000'.split(' ')

testRounds(
  'two servers on one database, and commands beside them, succeed and soon see what any of them wrote',
  { short: 1, long: 10 },
  workTogether,
)

testRounds(
  'a server sees the commit of another server that comes just after its own',
  { short: 1, long: 10, needs: [STRACE] },
  commitSideBySide,
)

/** Makes two servers commit at about the same time. The slow one takes long to let go of the lock. */
async function commitSideBySide(random: Random): Promise<void> {
  using db = await makeTestDatabase({ random })
  const guest = await createTokenIn(db.database, 'guest')
  await using slow = await db.serve(QUIET, { under: SLOW_LOCKS })
  await using fast = await db.serve()
  const names: string[] = []
  let atOnce = 0

  for (let id = 1; id <= PAIRS; id++) {
    let isOver = false
    const own = slow.request('POST', '/plants', { token: db.token, body: { id, name: 'Fern' } }).then(({ status }) => {
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

/** Makes two servers write under load, with each other and with commands. */
async function workTogether(random: Random): Promise<void> {
  // Both loads share a history, so that one server deletes what the other creates.
  using db = await makeTestDatabase({ random })
  await using one = await db.serve()
  await using other = await db.serve()
  const servers = [one, other]
  // First without load: a server that writes also learns of other writes by its own commits.
  await useGuest(db.database, servers)
  const loads = servers.map((server) => db.startLoad(server, { connections: CONNECTIONS }))

  for (let step = 1; step <= STEPS; step++) {
    const before = loads.map((load) => load.answers())
    await useGuest(db.database, servers)
    await until('both servers write', () =>
      loads.every((load, index) => load.answers() > (before[index] ?? 0) + ENOUGH),
    )
  }
  for (const load of loads) await load.stop()

  expect(db.history.refusals()).toEqual([])
  const [listed, otherListed] = await Promise.all(servers.map((server) => list(server, db.token)))
  expect(listed).toEqual(otherListed)
  db.check()
  for (const server of servers) expect([await server.end(), server.stderr()]).toEqual([0, ''])
  db.check()
}

/** Makes a user by commands, creates and deletes plants of the user on both servers, and deletes the user. */
async function useGuest(database: string, servers: readonly Server[]): Promise<void> {
  const token = (await run(database, 'token create --user guest')).stdout.trim()
  const names: string[] = []
  for (let count = 1; count <= GUEST_PLANTS; count++) {
    const [writing, deleting] = count % 2 === 0 ? servers : servers.toReversed()
    // The history does not look at ids below its own.
    const plant = { id: -count, name: `guest ${count}` }
    expect((await writing?.request('POST', '/plants', { token, body: plant }))?.status).toBe(200)
    if (count % 4 > 1) expect((await deleting?.request('DELETE', `/plants/${plant.id}`, { token }))?.status).toBe(204)
    else names.unshift(plant.name)
  }
  expect(await Promise.all(servers.map((server) => listTwice(server, token)))).toEqual([names, names])

  const [described] = JSON.parse((await run(database, 'token list --user guest --json')).stdout)
  expect(described).toMatchObject({ user: 'guest', state: 'active' })
  expect((await run(database, 'user list')).stdout).toMatch(new RegExp(`^guest +${names.length} +1 `, 'm'))
  expect((await run(database, 'check')).stderr).toEndWith('is whole.\n')
  await run(database, `token revoke ${described.id}`)
  const refused = await Promise.all(servers.map((server) => server.request('GET', '/plants', { token })))
  expect(await Promise.all(refused.map((answer) => answer.json()))).toMatchObject([{ error: 40102 }, { error: 40102 }])
  const { stderr } = await run(database, 'user delete guest --yes')
  expect(stderr).toBe(`Deleted user guest with 1 token and ${names.length} plants.\n`)
}

/** Runs a command, which must succeed. */
async function run(database: string, command: string) {
  const { exitCode, ...streams } = await runPlantstore([...command.split(' '), '--database', database])
  expect({ command, exitCode, stderr: streams.stderr }).toEqual({ command, exitCode: 0, stderr: expect.any(String) })
  return streams
}

/**
 * Once the server has to know what others wrote, expects the same list from the database and from the list cache, which holds
 * lists with a limit.
 */
async function listTwice(server: Server | undefined, token: string): Promise<string[]> {
  await Bun.sleep(OTHERS_SEEN_WITHIN_MS)
  const [names = [], cached] = await Promise.all([list(server, token), list(server, token, '?limit=1000')])
  expect(cached).toEqual(names)
  return names
}

/** The names of the plants that a token sees. */
async function list(server: Server | undefined, token: string, query = ''): Promise<string[]> {
  const text = await (await server?.request('GET', `/plants${query}`, { token }))?.text()
  return JSON.parse(text ?? '').map(({ name }: { readonly name: string }) => name)
}
