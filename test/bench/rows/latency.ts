import { makeDatabase } from '../databases.ts'
import type { Schedule } from '../load/open-loop.ts'
import { describeStream, runOpenLoop } from '../load/open-loop.ts'
import { CONNECTIONS, createLoad, freshIds, listLoad, measureRate } from '../load/wrk.ts'
import { interleave } from '../rounds.ts'
import { startPlantstore } from '../servers.ts'
import { ratios } from '../statistics.ts'
import { measureSync } from '../sync.ts'
import type { Row } from './row.ts'

/** A latency is measured this many times longer than a rate, because few requests make up its p99. */
export const LATENCY_TIMES = 4
const CREATES_PER_SECOND = 1000
const CREATE_CONNECTIONS = 16

/** The latency of a create at half of the maximal rate, against the latency of a sync. */
const createLatency: Row = {
  name: 'create-latency',
  title: 'create p99, open loop at half of the maximum',
  async run(bench) {
    const { workspace, seconds, say } = bench
    const seed = await makeDatabase(workspace.file('create-latency.db'), { users: 1, plantsPerUser: 100 })
    const plantstore = await startPlantstore(workspace, seed.path)
    say('the maximum')
    const load = createLoad(seed.tokensFile)
    const { perSecond: maximum } = await measureRate(workspace, plantstore, load, seconds)
    // These ids are above those of the measurement of the maximum.
    const firstId = freshIds(1000)
    const notes = [`maximum: ${Math.round(maximum)} creates a second`]

    const measureCreate = async () => {
      const schedule = { name: 'create', kind: 'create', perSecond: maximum / 2, connections: CONNECTIONS } as const
      const plan = { ...schedule, firstId: firstId(), tokensFile: seed.tokensFile }
      const [result] = await runOpenLoop(bench, plantstore, [plan], LATENCY_TIMES * seconds)
      if (result === undefined) throw new Error('the generator said nothing')
      notes.push(describeStream(result))
      return result.p99Ms
    }
    const measured = await interleave(
      [
        { name: 'sync', measure: async () => (await measureSync(workspace, seconds)).p99Ms },
        { name: 'create', measure: measureCreate },
      ],
      bench,
    )

    const toSync = { name: 'p99 of a create / p99 of a sync', unit: '×', goal: 4, floor: 8 } as const
    return {
      figures: ['sync', 'create'].map((name) => ({ name, unit: 'ms, p99', rounds: measured(name) })),
      claims: [{ ...toSync, rounds: ratios(measured('create'), measured('sync')) }],
      notes,
    }
  },
}

/** The latency of a list with concurrent creates on a slow disk, against the latency without creates. */
const listLatency: Row = {
  name: 'list-latency',
  title: 'list p99, open loop at half of the maximum, each sync delayed by 5 ms, with creates against without',
  async run(bench) {
    const { workspace, seconds, say } = bench
    const { path, tokensFile } = await makeDatabase(workspace.file('list-latency.db'), {
      users: 1000,
      plantsPerUser: 100,
    })
    // Both arms use one server under strace, so that the ratio does not include the cost of tracing.
    const plantstore = await startPlantstore(workspace, path, { hasSlowSyncs: true })
    say('the maximum')
    const { perSecond: maximum } = await measureRate(workspace, plantstore, listLoad(tokensFile), seconds)
    const firstId = freshIds()
    const notes = [
      `maximum: ${Math.round(maximum)} lists a second`,
      `with creates: ${CREATES_PER_SECOND} creates a second, open loop, by the same users`,
    ]

    const lists: Schedule = {
      ...{ name: 'list', kind: 'list', perSecond: maximum / 2, connections: CONNECTIONS },
      ...{ firstId: 0, tokensFile },
    }
    const creates = (): Schedule => ({
      ...{ name: 'create', kind: 'create', perSecond: CREATES_PER_SECOND, connections: CREATE_CONNECTIONS },
      ...{ firstId: firstId(), tokensFile },
    })
    const measure = async (schedules: readonly Schedule[]) => {
      const results = await runOpenLoop(bench, plantstore, schedules, LATENCY_TIMES * seconds)
      notes.push(results.map(describeStream).join('; '))
      return results[0]?.p99Ms ?? Number.NaN
    }
    const measured = await interleave(
      [
        { name: 'without creates', measure: () => measure([lists]) },
        { name: 'with creates', measure: () => measure([lists, creates()]) },
      ],
      bench,
    )

    const ratio = { name: 'p99 of a list with / without creates', unit: '×', goal: 1.2, floor: 2 } as const
    return {
      figures: ['without creates', 'with creates'].map((name) => ({ name, unit: 'ms, p99', rounds: measured(name) })),
      claims: [{ ...ratio, rounds: ratios(measured('with creates'), measured('without creates')) }],
      notes,
    }
  },
}

/** 10 000 lists and 1 000 creates a second of the same users. */
export const listsBesideCreates = (tokensFile: string, firstId: number): readonly Schedule[] => [
  { name: 'list', kind: 'list', perSecond: 10_000, connections: CONNECTIONS, firstId: 0, tokensFile },
  {
    ...{ name: 'create', kind: 'create', perSecond: CREATES_PER_SECOND, connections: CREATE_CONNECTIONS },
    ...{ firstId, tokensFile },
  },
]

/** The rows of latencies. */
export const LATENCIES: readonly Row[] = [createLatency, listLatency]
