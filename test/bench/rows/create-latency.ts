import { ratios } from '../claims.ts'
import { makeDatabase } from '../databases.ts'
import { describeStream, runOpenLoop } from '../load/open-loop.ts'
import { CONNECTIONS, createLoad, freshIds, measureRate } from '../load/wrk.ts'
import { interleave } from '../rounds.ts'
import { startPlantstore } from '../servers.ts'
import { measureSync } from '../yardsticks/measure-sync.ts'
import { LATENCY_TIMES, type Row } from './row.ts'

/** The latency of a create at half of the maximal rate, against the latency of a sync. */
export const createLatency: Row = {
  name: 'create-latency',
  title: 'create p99, open loop at half of the maximum',
  async run(bench) {
    const { workspace, rounds, seconds, say } = bench
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
      rounds,
      say,
    )

    const toSync = { name: 'p99 of a create / p99 of a sync', unit: '×', goal: 4, floor: 8 } as const
    return {
      figures: ['sync', 'create'].map((name) => ({ name, unit: 'ms, p99', rounds: measured(name) })),
      claims: [{ ...toSync, rounds: ratios(measured('create'), measured('sync')) }],
      notes,
    }
  },
}
