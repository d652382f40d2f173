import { ratios } from '../claims.ts'
import { makeDatabase } from '../databases.ts'
import { describeStream, runOpenLoop } from '../load/open-loop.ts'
import type { Schedule } from '../load/stream.ts'
import { CONNECTIONS, freshIds, listLoad, measureRate } from '../load/wrk.ts'
import { interleave } from '../rounds.ts'
import { startPlantstore } from '../servers.ts'
import { LATENCY_TIMES, type Row } from './row.ts'

const CREATES_PER_SECOND = 1000
const CREATE_CONNECTIONS = 16

/** The latency of a list with concurrent creates on a slow disk, against the latency without creates. */
export const listLatency: Row = {
  name: 'list-latency',
  title: 'list p99, open loop at half of the maximum, each sync delayed by 5 ms, with creates against without',
  async run(bench) {
    const { workspace, rounds, seconds, say } = bench
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
      rounds,
      say,
    )

    const ratio = { name: 'p99 of a list with / without creates', unit: '×', goal: 1.2, floor: 2 } as const
    return {
      figures: ['without creates', 'with creates'].map((name) => ({ name, unit: 'ms, p99', rounds: measured(name) })),
      claims: [{ ...ratio, rounds: ratios(measured('with creates'), measured('without creates')) }],
      notes,
    }
  },
}
