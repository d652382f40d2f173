import { Database } from 'bun:sqlite'
import { describe, expect, test } from 'bun:test'
import { median } from '../bench/statistics.ts'
import { runPlantstore } from '../support/executable.ts'
import { IS_LONG } from '../support/long.ts'
import { formatRequest, openConnections, sendRequests } from '../support/paced-requests.ts'
import {
  countDescriptors,
  moveToLoadCore,
  ON_SERVER_CORE,
  PROCESS_TOOLS,
  residentMib,
  sizeMib,
} from '../support/process.ts'
import { randomNumbers } from '../support/random.ts'
import { type Connection, openConnection } from '../support/raw-connection.ts'
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

/** How much larger than the second quarter the last may be. A curve that levels off has stopped growing. */
const RESIDENT_FACTOR = 1.1
const RESIDENT_SLACK_MIB = 10
const DESCRIPTORS_SLACK = 8
const WAL_SLACK_MIB = 4

/** Drops the log lines of requests. The server writes them as by default, but they are too many to be kept. */
const WITHOUT_REQUESTS = ['bash', '-c', `exec "$@" > >(grep --line-buffered -v '"msg":"request"')`, 'bash']

type Mix = ReturnType<typeof mixRequests>

/** The values of one quantity, which is measured once a second. */
function curveOf(name: string, unit: string, measure: () => number) {
  const values: number[] = []
  return { name, unit, measure, values }
}

type Curve = ReturnType<typeof curveOf>

describe.skipIf(!IS_LONG || lacks(PROCESS_TOOLS))(`${MINUTES} minutes at 70 % of the capacity`, () => {
  test('with errors, cut connections and new tokens: memory, descriptors and the WAL level off', async () => {
    using db = await makeTestDatabase()
    await using server = await db.serve([], { under: [...WITHOUT_REQUESTS, ...ON_SERVER_CORE] })
    moveToLoadCore()
    const mix = mixRequests(randomNumbers(42))
    const resident = curveOf('Resident memory', 'MiB', () => residentMib(server.pid))
    const descriptors = curveOf('Descriptors', '', () => countDescriptors(server.pid))
    const wal = curveOf('WAL', 'MiB', () => sizeMib(`${db.database}-wal`))
    const curves = [resident, descriptors, wal]
    const sampling = setInterval(() => {
      for (const { values, measure } of curves) values.push(measure())
    }, SAMPLE_EVERY_MS)
    const { requests, cuts, lost } = await soak(server.port, db.database, mix)
    clearInterval(sampling)
    const exitCode = await server.end()

    const title = `${(requests / 1e6).toFixed(1)} million requests, ${cuts} cut connections`
    console.log(`${title}: ${curves.map(describeCurve).join('; ')}`)

    expect({ exitCode, lost, wrong: mix.wrong }).toEqual({ exitCode: 0, lost: 0, wrong: [] })
    expect(server.stdout()).not.toMatch(/"level":"(?:error|fatal)"/)
    expectPlants(db.database, mix)
    const [memory, open, length] = [quartersOf(resident), quartersOf(descriptors), quartersOf(wal)]
    expect(median(memory.last)).toBeLessThan(RESIDENT_FACTOR * median(memory.second) + RESIDENT_SLACK_MIB)
    expect(median(open.last)).toBeLessThan(median(open.second) + DESCRIPTORS_SLACK)
    expect(Math.max(...length.last)).toBeLessThan(Math.max(...length.second) + WAL_SLACK_MIB)
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
  const create = async (scope: string) => {
    const args = ['token', 'create', '--user', 'me', '--scope', scope, '--database', database]
    return (await runPlantstore(args)).stdout.trim()
  }
  for (const token of outdated === undefined ? [] : [outdated.write, outdated.read]) {
    const { exitCode } = await runPlantstore(['token', 'revoke', '-', '--database', database], { stdin: token })
    if (exitCode !== 0) throw new Error(`a token was not revoked: exit code ${exitCode}`)
  }
  return { write: await create('write'), read: await create('read'), revoked: outdated?.write ?? 'plst_none' }
}

/** What a client sends on a connection that is then cut. */
const CUTS: readonly ((connection: Connection, mix: Mix, token: string) => void)[] = [
  (connection, mix) => connection.send(mix.createToCut()),
  (connection, mix) => connection.send(mix.createToCut().slice(0, -10)),
  (connection, mix) => connection.send(mix.createToCut().slice(0, 30)),
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

/** The second and the last quarter of a curve. */
function quartersOf({ values }: Curve) {
  const quarter = Math.floor(values.length / 4)
  return { second: values.slice(quarter, 2 * quarter), last: values.slice(-quarter) }
}

function describeCurve(curve: Curve): string {
  const { second, last } = quartersOf(curve)
  return `${curve.name} ${median(second).toFixed(1)} ${curve.unit} in the second quarter, ${median(last).toFixed(1)} in the last`
}

/** Expects all acknowledged plants, and besides them only plants of requests that were cut off. */
function expectPlants(database: string, mix: Mix): void {
  using db = new Database(database, { readonly: true })
  const ids = db
    .prepare<{ id: number }, []>('select id from plants')
    .all()
    .map(({ id }) => id)
  const { live, possible } = mix.plants()
  expect(new Set(live).difference(new Set(ids))).toEqual(new Set())
  expect(new Set(ids).difference(new Set(live)).difference(possible)).toEqual(new Set())
}
