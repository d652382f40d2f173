import { expect } from 'bun:test'
import { OTHERS_SEEN_WITHIN_MS } from '../../src/domain/store.ts'
import { answerOf, codeOfAnswer } from '../cli/support/service-client.ts'
import { runPlantstore } from '../support/executable.ts'
import { runProgram } from '../support/program.ts'
import type { Random } from '../support/random.ts'
import { program } from '../support/requirement.ts'
import { STRACE, slowCalls } from '../support/strace.ts'
import { createTokenIn } from '../support/tokens.ts'
import { rounds, testRounds } from './rounds.ts'
import { makeTestDatabase, QUIET, type Server, type TestDatabase } from './test-database.ts'

const STEPS = rounds(150, 10_000)
const SLOW_STEPS = rounds(20, 500)
/** Few ids, so that most writes change the lists below. */
const IDS = 12
const LISTS = ['?limit=3', '?limit=3&after=4', '?limit=100']
/** Longer than a cached answer is used without a look at the database. */
const PAUSE_MAX_MS = 2 * OTHERS_SEEN_WITHIN_MS
/** Another process has written by then, unless the database is locked. */
const LOCKED_MS = 1000
/** Makes each sync of a server last 100 ms. */
const SLOW_SYNCS = slowCalls('fsync', 100)

const SQLITE3 = program('sqlite3')

/** Pairs of creates at both servers, and the most time between the creates of a pair. */
const PAIRS = rounds(60, 200)
const PAIR_PAUSE_MAX_MS = 8
/** Makes calls on locks slow. */
const SLOW_LOCKS = slowCalls('fcntl', 1)

testRounds(
  'lists of two servers are never older than promised, beside sqlite3, commands, checkpoints, stops and restarts',
  { short: 1, long: 10, needs: [SQLITE3] },
  (random) => compareWithModel(random, STEPS),
)

testRounds(
  'lists of two servers are never older than promised with syncs of 100 ms',
  { short: 1, long: 2, needs: [SQLITE3, STRACE] },
  (random) => compareWithModel(random, SLOW_STEPS, SLOW_SYNCS),
)

testRounds(
  'a server sees the commit of another server that comes just after its own',
  { short: 1, long: 10, needs: [STRACE] },
  commitSideBySide,
)

/** The name of each plant after a write, in the order of their ids, who wrote it, and when it was known to be done. */
interface State {
  readonly plants: readonly (readonly [id: number, name: string])[]
  readonly writer: Server | 'another process'
  readonly atMs: number
}

/** Lets two servers and other processes write in turns, and compares each list with the states that it may show. */
async function compareWithModel(random: Random, steps: number, under: readonly string[] = []): Promise<void> {
  await using db = await makeTestDatabase({ random })
  const servers = [await db.serve(QUIET, { under }), await db.serve(QUIET, { under })]
  const history: State[] = [{ plants: [], writer: 'another process', atMs: Number.NEGATIVE_INFINITY }]
  const latest = () => (history.at(-1) as State).plants
  /** Lets `change` write a plant, and records which plants there are then. `change` resolves to the plant's name; a delete to `undefined`. */
  const write = async (
    writer: State['writer'],
    change: (id: number, isStored: boolean) => Promise<string | undefined>,
  ) => {
    const id = random(IDS)
    const isStored = latest().some(([other]) => other === id)
    const name = await change(id, isStored)
    const others = latest().filter(([other]) => other !== id)
    const plants = name === undefined ? others : [...others, [id, name] as const].sort(([a], [b]) => a - b)
    history.push({ plants, writer, atMs: performance.now() })
  }
  /** Puts a plant under a new name, or creates it, or deletes it, whichever is possible. */
  const writeBy = (server: Server) =>
    write(server, async (id, isStored) => {
      const isPut = random(2) === 0
      const name = isPut ? `${id}, put ${history.length}` : String(id)
      const [method, path] = isPut || isStored ? [isPut ? 'PUT' : 'DELETE', `/plants/${id}`] : ['POST', '/plants']
      const sent = { token: db.token, ...(method !== 'DELETE' && { body: { id, name } }) }
      const { status, body } = await answerOf(server.request(method, path, sent))
      const [made, changed] = isPut ? [201, 200] : [200, 204]
      expect([method, status], body).toEqual([method, isStored ? changed : made])
      return method === 'DELETE' ? undefined : name
    })
  const writeByOther = () =>
    write('another process', async (id, isStored) => {
      const insert = `insert into plants (user_id, id, name) values (1, ${id}, '${id}')`
      await runSqlite3(db, isStored ? `delete from plants where id = ${id}` : insert)
      return isStored ? undefined : String(id)
    })
  const writeByCommand = () =>
    write('another process', async (id, isStored) => {
      if (isStored) {
        await runSqlite3(db, `delete from plants where id = ${id}`)
        return undefined
      }
      const args = ['import', '-', '--user', 'me', '--database', db.database]
      expect(await runPlantstore(args, { stdin: `{"id":${id},"name":"${id}"}\n` })).toMatchObject({ exitCode: 0 })
      return String(id)
    })
  const readBy = async (server: Server) => {
    const list = LISTS[random(LISTS.length)] as string
    const sentMs = performance.now()
    const plants = (await (await server.request('GET', `/plants${list}`, { token: db.token })).json()) as {
      readonly name: string
    }[]
    const oldest = history.findLastIndex(
      ({ writer, atMs }) => atMs <= sentMs - (writer === server ? 0 : OTHERS_SEEN_WITHIN_MS),
    )
    // A write that is not answered yet may show.
    return () => {
      const allowed = history.slice(oldest).map((state) => show(state.plants, list))
      expect(allowed).toContainEqual(plants.map(({ name }) => name))
    }
  }
  /** Stops the whole process at any of its steps, and lets others write meanwhile. */
  const stop = async (server: Server) => {
    const reading = readBy(server)
    await Bun.sleep(random(3))
    process.kill(server.pid, 'SIGSTOP')
    const written = writeByOther()
    // A server that was stopped while it wrote when a token was used holds the lock until it goes on.
    await Promise.race([written, Bun.sleep(LOCKED_MS)])
    await Bun.sleep(random(PAUSE_MAX_MS))
    process.kill(server.pid, 'SIGCONT')
    await written
    return reading
  }
  const restart = async (index: number) => {
    expect(await servers[index]?.end()).toBe(0)
    servers[index] = await db.serve(QUIET, { under })
  }

  for (let step = 0; step < steps; step++) {
    const index = random(2)
    const server = servers[index] as Server
    const chance = random(100)
    const steps: Promise<unknown>[] = []
    if (chance < 35) steps.push(writeBy(server))
    else if (chance < 45) steps.push(writeByOther())
    else if (chance < 47) steps.push(writeByCommand())
    else if (chance < 50) steps.push(runSqlite3(db, 'pragma wal_checkpoint(truncate)'))
    else if (chance < 52) (await stop(server))()
    else if (chance < 53) await restart(index)
    else if (chance < 60) await Bun.sleep(random(PAUSE_MAX_MS))
    await Bun.sleep(random(2))
    const checks = await Promise.all(servers.map(readBy))
    await Promise.all(steps)
    for (const check of checks) check()
  }
  for (const server of servers) expect([await server.end(), server.stderr()]).toEqual([0, ''])
}

/** The names in a list of these plants. */
function show(plants: State['plants'], list: string): readonly string[] {
  const query = new URLSearchParams(list)
  const after = Number(query.get('after') ?? -1)
  return plants
    .filter(([id]) => id > after)
    .slice(0, Number(query.get('limit')))
    .map(([, name]) => name)
}

async function runSqlite3({ database }: TestDatabase, statement: string): Promise<void> {
  const { exitCode, stderr } = await runProgram(['sqlite3', '-cmd', '.timeout 5000', database, statement])
  expect({ statement, exitCode, stderr }).toEqual({ statement, exitCode: 0, stderr: '' })
}

/** Makes two servers commit at about the same time. The slow one takes long to let go of the lock. */
async function commitSideBySide(random: Random): Promise<void> {
  using db = await makeTestDatabase({ random })
  const guest = await createTokenIn(db.database, 'guest')
  await using slow = await db.serve(QUIET, { under: SLOW_LOCKS })
  await using fast = await db.serve()
  const names: string[] = []
  let atOnce = 0
  for (let id = 1; id <= PAIRS; id++) {
    const own = slow.request('POST', '/plants', { token: db.token, body: { id, name: 'Fern' } })
    await Bun.sleep(random(PAIR_PAUSE_MAX_MS))
    const body = { id, name: `guest ${id}` }
    const code = await codeOfAnswer(fast.request('POST', '/plants', { token: guest, body }))
    if (Bun.peek.status(own) === 'pending') atOnce++
    names.push(`guest ${id}`)
    expect([code, await codeOfAnswer(own)]).toEqual([200, 200])
    await Bun.sleep(OTHERS_SEEN_WITHIN_MS)
    // From the database, and from the list cache, which holds lists with a limit.
    for (const query of ['', '?limit=1000']) {
      const plants = await (await slow.request('GET', `/plants${query}`, { token: guest })).json()
      expect(plants).toEqual(names.map((name) => ({ name })))
    }
  }
  expect(atOnce).toBeGreaterThan(0)
  expect(await slow.end()).toBe(0)
}
