import { describe, expect, test } from 'bun:test'
import { median } from '../bench/statistics.ts'
import { queryAll } from '../store/sqlite/files.ts'
import { runPlantstore } from '../support/executable.ts'
import { IS_LONG } from '../support/long.ts'
import { sendRequests } from '../support/paced-requests.ts'
import {
  countDescriptors,
  moveToLoadCore,
  ON_SERVER_CORE,
  PROCESS_TOOLS,
  residentMib,
  sizeMib,
} from '../support/process.ts'
import { randomNumbers } from '../support/random.ts'
import { type Connection, formatRequest, openConnection, openConnections } from '../support/raw-connection.ts'
import { lacks } from '../support/requirement.ts'
import { type MixTokens, mixRequests } from './mixed-requests.ts'
import { makeTestDatabase } from './test-database.ts'

/** `FAULT_SOAK_MINUTES=2` makes a short run. */
const MINUTES = Number(process.env.FAULT_SOAK_MINUTES ?? 30)
const LOAD_SHARE = 0.7
const CAPACITY_SECONDS = 5
/** After each slice the tokens and half of the connections are replaced. */
const SLICE_SECONDS = 10
const CONNECTIONS = 64
const CUT_EVERY_MS = 100
const SAMPLE_EVERY_MS = 1000

/** Drops the log lines of requests. The server writes them as by default, but they are too many to be kept. */
const WITHOUT_REQUESTS = ['bash', '-c', `exec "$@" > >(grep --line-buffered -v '"msg":"request"')`, 'bash']

type Mix = ReturnType<typeof mixRequests>

/** Quantities of a server, and how much larger than in the second quarter each may be in the last. Such a curve has stopped growing. */
const curvesOf = (pid: number, database: string): readonly Curve[] => [
  { name: 'MiB of memory', look: () => residentMib(pid), of: median, limit: (before) => 1.1 * before + 10 },
  { name: 'descriptors', look: () => countDescriptors(pid), of: median, limit: (before) => before + 8 },
  {
    name: 'MiB of WAL',
    look: () => sizeMib(`${database}-wal`),
    of: (values) => Math.max(...values),
    limit: (before) => before + 4,
  },
]

interface Curve {
  readonly name: string
  readonly look: () => number
  /** What counts of many values. */
  readonly of: (values: readonly number[]) => number
  readonly limit: (before: number) => number
}

describe.skipIf(!IS_LONG || lacks(PROCESS_TOOLS))(`${MINUTES} minutes at 70 % of the capacity`, () => {
  test('with errors, cut connections and new tokens: memory, descriptors and the WAL level off', async () => {
    using db = await makeTestDatabase()
    await using server = await db.serve([], { under: [...WITHOUT_REQUESTS, ...ON_SERVER_CORE] })
    moveToLoadCore()
    const mix = mixRequests(randomNumbers(42))
    const curves = curvesOf(server.pid, db.database)
    const samples: number[][] = []
    const sampling = setInterval(() => samples.push(curves.map(({ look }) => look())), SAMPLE_EVERY_MS)
    const { requests, cuts, lost } = await soak(server.port, db.database, mix)
    clearInterval(sampling)
    const exitCode = await server.end()

    console.log(`${(requests / 1e6).toFixed(1)} million requests, ${cuts} cut connections`)
    expect({ exitCode, lost, wrong: mix.wrong }).toEqual({ exitCode: 0, lost: 0, wrong: [] })
    expect(server.stdout()).not.toMatch(/"level":"(?:error|fatal)"/)
    const ids = new Set(queryAll(db.database, 'select id from plants').flat().map(Number))
    const { live, possible } = mix.plants()
    // All acknowledged plants are there, and besides them only plants of requests that were cut off.
    expect(new Set(live).difference(ids)).toEqual(new Set())
    expect(ids.difference(new Set(live)).difference(possible)).toEqual(new Set())
    const quarter = Math.floor(samples.length / 4)
    for (const [index, { name, of, limit }] of curves.entries()) {
      const values = samples.map((sample) => sample[index] ?? 0)
      const [second, last] = [of(values.slice(quarter, 2 * quarter)), of(values.slice(-quarter))]
      console.log(`${second.toFixed(1)} ${name} in the second quarter, ${last.toFixed(1)} in the last`)
      expect(last).toBeLessThan(limit(second))
    }
  })
})

/** Loads a server until the time is over. Resolves to the numbers of requests, cut connections and lost answers. */
async function soak(port: number, database: string, mix: Mix) {
  let outdated: MixTokens | undefined
  let tokens = await renewTokens(database, outdated)
  mix.useTokens(tokens)
  let connections = await openConnections(port, CONNECTIONS)
  const { sentPerSecond: capacity } = await sendRequests({ connections, seconds: CAPACITY_SECONDS, next: mix.next })
  const perSecond = LOAD_SHARE * capacity
  console.log(`${capacity.toFixed(0)} requests a second at most; ${perSecond.toFixed(0)} are sent`)
  using cutting = startCutting(port, mix, () => tokens.write)
  let requests = 0
  let lost = 0
  for (const endMs = performance.now() + MINUTES * 60_000; performance.now() < endMs; ) {
    const loading = sendRequests({ connections, seconds: SLICE_SECONDS, next: mix.next, perSecond })
    const [{ sentPerSecond, cut }, renewed] = await Promise.all([loading, renewTokens(database, outdated)])
    requests += sentPerSecond * SLICE_SECONDS
    lost += cut
    outdated = tokens
    tokens = renewed
    mix.useTokens(tokens)
    for (const connection of connections.splice(0, CONNECTIONS / 2)) connection.cut()
    const kept = connections.filter(({ isClosed }) => !isClosed())
    connections = [...kept, ...(await openConnections(port, CONNECTIONS / 2))]
  }
  for (const { cut } of connections) cut()
  return { requests, cuts: cutting.cuts(), lost }
}

/** Makes tokens by the command line beside the server, and revokes the outdated ones. */
async function renewTokens(database: string, outdated: MixTokens | undefined): Promise<MixTokens> {
  const run = (stdin: string, ...args: readonly string[]) =>
    runPlantstore(['token', ...args, '--database', database], { stdin })
  const create = async (scope: string) => (await run('', 'create', '--user', 'me', '--scope', scope)).stdout.trim()
  for (const token of outdated === undefined ? [] : [outdated.write, outdated.read])
    expect(await run(token, 'revoke', '-')).toMatchObject({ exitCode: 0 })
  return { write: await create('write'), read: await create('read'), revoked: outdated?.write ?? 'plst_none' }
}

/** What a client sends on a connection that is then cut. */
const CUTS: readonly ((connection: Connection, mix: Mix, token: string) => void)[] = [
  (connection, mix) => connection.send(mix.writeToCut()),
  (connection, mix) => connection.send(mix.writeToCut().slice(0, -10)),
  (connection, mix) => connection.send(mix.writeToCut().slice(0, 30)),
  (connection, _mix, token) => connection.send(formatRequest('GET', '/plants', token)),
  () => {},
]

function startCutting(port: number, mix: Mix, token: () => string) {
  let cuts = 0
  const timer = setInterval(async () => {
    const connection = await openConnection(port)
    CUTS[cuts++ % CUTS.length]?.(connection, mix, token())
    setTimeout(connection.cut, cuts % 7)
  }, CUT_EVERY_MS)
  return {
    cuts: () => cuts,
    [Symbol.dispose]: () => clearInterval(timer),
  }
}
