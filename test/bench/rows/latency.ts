import { makeDatabase } from '../databases.ts'
import { describeStream, runOpenLoop, type Schedule } from '../load/open-loop.ts'
import { CONNECTIONS, createLoad, freshIds, type Load, listLoad, measureRate } from '../load/wrk.ts'
import type { Goal } from '../results.ts'
import { interleave } from '../rounds.ts'
import { type Server, startPlantstore } from '../servers.ts'
import { ratios } from '../statistics.ts'
import { measureSync } from '../sync.ts'
import type { Bench, Row } from './row.ts'

/** A latency is measured this many times longer than a rate, because few requests make up its p99. */
const LATENCY_TIMES = 4
/** The creates beside lists. */
const CREATES = { name: 'create', kind: 'create', perSecond: 1000, connections: 16 } as const

/** Returns a function that measures the p99 of 10 000 lists a second beside creates, in milliseconds. */
export function listP99(bench: Bench, tokensFile: string, firstId = freshIds()): (server: Server) => Promise<number> {
  const lists = { name: 'list', kind: 'list', perSecond: 10_000, connections: CONNECTIONS } as const
  return async (server) => {
    const schedules = [lists, CREATES].map((each) => ({ ...each, firstId: firstId(), tokensFile }))
    const [result] = await runOpenLoop(bench, server, schedules, LATENCY_TIMES * bench.seconds)
    return result?.p99Ms ?? Number.NaN
  }
}

/** Measures the p99 of requests at half of the maximal rate. Others may be sent beside them. */
type P99 = (kind: Schedule['kind'], ...beside: readonly Omit<Schedule, 'firstId' | 'tokensFile'>[]) => Promise<number>

/** Two latencies that are compared, while a server runs under half of the load that it can do. */
interface LatencyRow extends Pick<Row, 'name' | 'title'> {
  readonly users: number
  /** Whether each sync is delayed. Both latencies are of one server under strace, so that the ratio is without its cost. */
  readonly hasSlowSyncs?: boolean
  /** The load whose maximum is measured first. */
  readonly load: (tokensFile: string) => Load
  readonly reference: readonly [name: string, measure: (p99: P99, bench: Bench) => Promise<number>]
  readonly measured: LatencyRow['reference']
  readonly goal: Goal
}

const latencyRow = ({ name, title, users, hasSlowSyncs = false, load, goal, ...both }: LatencyRow): Row => ({
  name,
  title,
  async run(bench) {
    const { workspace, seconds, say } = bench
    const { path, tokensFile } = await makeDatabase(workspace.file('latency.db'), { users, plantsPerUser: 100 })
    const server = await startPlantstore(workspace, path, { hasSlowSyncs })
    say('the maximum')
    const { perSecond: maximum } = await measureRate(workspace, server, load(tokensFile), seconds)
    const notes = [`maximum: ${Math.round(maximum)} requests a second`]
    // These ids are above those of the measurement of the maximum.
    const firstId = freshIds(1000)
    const p99: P99 = async (kind, ...beside) => {
      const schedules = [{ name: kind, kind, perSecond: maximum / 2, connections: CONNECTIONS }, ...beside]
      const complete = schedules.map((each) => ({ ...each, firstId: firstId(), tokensFile }))
      const results = await runOpenLoop(bench, server, complete, LATENCY_TIMES * seconds)
      notes.push(results.map(describeStream).join('; '))
      return results[0]?.p99Ms ?? Number.NaN
    }
    const contestants = [both.reference, both.measured].map(([name, measure]) => ({
      name,
      measure: () => measure(p99, bench),
    }))
    const found = await interleave(contestants, bench)
    const [reference, measured] = [both.reference[0], both.measured[0]]
    return {
      figures: [reference, measured].map((name) => ({ name, unit: 'ms, p99', rounds: found(name) })),
      claims: [
        {
          ...{ name: `p99 of ${measured} / p99 of ${reference}`, unit: '×', ...goal },
          rounds: ratios(found(measured), found(reference)),
        },
      ],
      notes,
    }
  },
})

/** The rows of latencies. */
export const LATENCIES: readonly Row[] = [
  latencyRow({
    name: 'create-latency',
    title: 'create p99, open loop at half of the maximum',
    ...{ users: 1, load: createLoad, goal: { goal: 4, floor: 8 } },
    reference: ['a sync', async (_, { workspace, seconds }) => (await measureSync(workspace, seconds)).p99Ms],
    measured: ['a create', (p99) => p99('create')],
  }),
  latencyRow({
    name: 'list-latency',
    title: 'list p99, open loop at half of the maximum, each sync delayed by 5 ms, with creates against without',
    ...{ users: 1000, hasSlowSyncs: true, load: listLoad, goal: { goal: 1.2, floor: 2 } },
    reference: ['a list without creates', (p99) => p99('list')],
    measured: ['a list with 1 000 creates a second', (p99) => p99('list', CREATES)],
  }),
]
