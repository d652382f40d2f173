import { Database } from 'bun:sqlite'
import { describe, expect, test } from 'bun:test'
import { mkdirSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { median } from '../bench/statistics.ts'
import { runPlantstore, serve } from '../support/executable.ts'
import { makeFolder } from '../support/folder.ts'
import { randomNumbers } from '../support/random.ts'
import { lacks } from '../support/requirement.ts'
import { type Curve, toCsv, toSvg } from './curves.ts'
import { type MixTokens, mixRequests } from './mixed-requests.ts'
import { openConnections, sendRequests } from './paced-requests.ts'
import { countDescriptors, moveToLoadCore, ON_SERVER_CORE, PROCESS_TOOLS, residentMib, sizeMib } from './process.ts'
import { formatRequest, openConnection, type RawConnection } from './raw-connection.ts'
import { IS_LONG } from './rounds.ts'

/** `FAULT_SOAK_MINUTES=2` shortens it, to try it. */
const MINUTES = Number(process.env.FAULT_SOAK_MINUTES ?? 30)
const LOAD_SHARE = 0.7
const CAPACITY_SECONDS = 5
/** After each of these the tokens are others, and half of the connections are. */
const SLICE_SECONDS = 10
const CONNECTIONS = 64
const CUT_EVERY_MS = 100
const SAMPLE_EVERY_MS = 1000

/** How much more the last quarter may have than the second: what levels off has stopped growing. */
const RESIDENT_FACTOR = 1.1
const RESIDENT_SLACK_MIB = 10
const DESCRIPTORS_SLACK = 8
const WAL_SLACK_MIB = 4

const CURVES_FOLDER = resolve(import.meta.dir, '../../dist/fault')

/** The lines of the log that are no requests: those are written as they are by default, but too many to be kept. */
const WITHOUT_REQUESTS = ['bash', '-c', `exec "$@" > >(grep --line-buffered -v '"msg":"request"')`, 'bash']

type Mix = ReturnType<typeof mixRequests>

/** Makes tokens by the command line beside the server, and revokes others that were used before. */
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

/** Connections that are cut, each in the middle of something else. */
const CUTS: readonly ((wire: RawConnection, mix: Mix, token: string) => void)[] = [
  (wire, mix) => wire.write(mix.createToCut()),
  (wire, mix) => wire.write(mix.createToCut().slice(0, -10)),
  (wire, mix) => wire.write(mix.createToCut().slice(0, 30)),
  (wire, _mix, token) => wire.write(formatRequest('GET', '/plants', token)),
  () => {},
]

function startCutting(port: number, mix: Mix, token: () => string) {
  let cuts = 0
  const timer = setInterval(async () => {
    const wire = await openConnection(port)
    CUTS[cuts++ % CUTS.length]?.(wire, mix, token())
    setTimeout(wire.cut, cuts % 7)
  }, CUT_EVERY_MS)
  return {
    cuts: () => cuts,
    [Symbol.dispose]: () => clearInterval(timer),
  }
}

/** Looks at a process once a second. */
function startSampling(pid: number, database: string) {
  const seconds: number[] = []
  const resident: number[] = []
  const descriptors: number[] = []
  const wal: number[] = []
  const startMs = performance.now()
  const timer = setInterval(() => {
    seconds.push(Math.round((performance.now() - startMs) / 1000))
    resident.push(residentMib(pid))
    descriptors.push(countDescriptors(pid))
    wal.push(sizeMib(`${database}-wal`))
  }, SAMPLE_EVERY_MS)
  return {
    seconds,
    resident: { name: 'Resident memory', unit: 'MiB', values: resident },
    descriptors: { name: 'Descriptors', unit: '', values: descriptors },
    wal: { name: 'WAL', unit: 'MiB', values: wal },
    [Symbol.dispose]: () => clearInterval(timer),
  }
}

/** The second and the last quarter of a curve. */
function quartersOf({ values }: Curve) {
  const quarter = Math.floor(values.length / 4)
  return { second: values.slice(quarter, 2 * quarter), last: values.slice(-quarter) }
}

/** Loads a server until the time is over. Returns what that came to. */
async function soak(port: number, database: string, mix: Mix) {
  let outdated: MixTokens | undefined
  let tokens = await renewTokens(database, outdated)
  mix.useTokens(tokens)
  let wires = await openConnections(port, CONNECTIONS)
  const { sentPerSecond: capacity } = await sendRequests({ wires, seconds: CAPACITY_SECONDS, next: mix.next })
  const perSecond = LOAD_SHARE * capacity
  console.log(`${capacity.toFixed(0)} requests a second at most; ${perSecond.toFixed(0)} are sent`)
  using cutting = startCutting(port, mix, () => tokens.write)
  let requests = 0
  let lost = 0
  for (const endMs = performance.now() + MINUTES * 60_000; performance.now() < endMs; ) {
    const loading = sendRequests({ wires, seconds: SLICE_SECONDS, next: mix.next, perSecond })
    const [{ sentPerSecond, cut }, renewed] = await Promise.all([loading, renewTokens(database, outdated)])
    requests += sentPerSecond * SLICE_SECONDS
    lost += cut
    outdated = tokens
    tokens = renewed
    mix.useTokens(tokens)
    for (const wire of wires.splice(0, CONNECTIONS / 2)) wire.cut()
    wires = [...wires.filter(({ isOpen }) => isOpen()), ...(await openConnections(port, CONNECTIONS / 2))]
  }
  for (const wire of wires) wire.cut()
  return { requests, cuts: cutting.cuts(), lost }
}

describe.skipIf(!IS_LONG || lacks(PROCESS_TOOLS))(`${MINUTES} minutes at 70 % of what can be done`, () => {
  test('with errors, cut connections and new tokens mixed in: memory, descriptors and the WAL level off', async () => {
    using folder = makeFolder()
    const database = join(folder.path, 'plantstore.db')
    await using server = await serve(database, [], { under: [...WITHOUT_REQUESTS, ...ON_SERVER_CORE] })
    moveToLoadCore()
    const mix = mixRequests(randomNumbers(42))
    using sampling = startSampling(server.pid, database)
    const { requests, cuts, lost } = await soak(server.port, database, mix)
    const { seconds, resident, descriptors, wal } = sampling
    const exitCode = await server.end()

    const curves = [resident, descriptors, wal]
    mkdirSync(CURVES_FOLDER, { recursive: true })
    await Bun.write(join(CURVES_FOLDER, 'soak.csv'), toCsv(seconds, curves))
    const title = `${(requests / 1e6).toFixed(1)} million requests, ${cuts} cut connections`
    await Bun.write(join(CURVES_FOLDER, 'soak.svg'), toSvg(title, seconds, curves))
    console.log(`${title}: ${curves.map(describeCurve).join('; ')}`)

    expect({ exitCode, lost, wrong: mix.wrong }).toEqual({ exitCode: 0, lost: 0, wrong: [] })
    expect(server.stdout()).not.toMatch(/"level":"(?:error|fatal)"/)
    expectPlants(database, mix)
    const [memory, open, length] = [quartersOf(resident), quartersOf(descriptors), quartersOf(wal)]
    expect(median(memory.last)).toBeLessThan(RESIDENT_FACTOR * median(memory.second) + RESIDENT_SLACK_MIB)
    expect(median(open.last)).toBeLessThan(median(open.second) + DESCRIPTORS_SLACK)
    expect(Math.max(...length.last)).toBeLessThan(Math.max(...length.second) + WAL_SLACK_MIB)
  })
})

function describeCurve(curve: Curve): string {
  const { second, last } = quartersOf(curve)
  return `${curve.name} ${median(second).toFixed(1)} ${curve.unit} in the second quarter, ${median(last).toFixed(1)} in the last`
}

/** Throws unless all plants are there that were acknowledged, and none but those and what was cut off. */
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
