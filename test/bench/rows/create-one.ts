import { join } from 'node:path'
import { ratios } from '../claims.ts'
import { makeDatabase } from '../databases.ts'
import { createLoad, freshIds, measureRate } from '../load/wrk.ts'
import { interleave } from '../rounds.ts'
import { startPlantstore } from '../servers.ts'
import { SERVER_CORE } from '../workspace.ts'
import type { Row } from './row.ts'

const LONE = join(import.meta.dir, '../yardsticks/lone.ts')

/** Durable creates of one client, against transactions of one insert and one sync. */
export const createOne: Row = {
  name: 'create-one',
  title: 'create, 1 connection, durable',
  async run({ workspace, rounds, seconds, say }) {
    const seed = await makeDatabase(workspace.file('create-one.db'), { users: 1, plantsPerUser: 100 })
    const loneDatabase = seed.copy(workspace.file('lone.db'))
    const plantstore = await startPlantstore(workspace, seed.path)

    const load = createLoad(seed.tokensFile, 1)
    const nextLoneId = freshIds()
    const measureLone = async () => {
      const command = ['bun', LONE, loneDatabase, String(nextLoneId()), String(seconds)]
      return Number(await workspace.run(SERVER_CORE, command))
    }
    const measured = await interleave(
      [
        { name: 'lone', measure: measureLone },
        {
          name: 'plantstore',
          measure: async () => (await measureRate(workspace, plantstore, load, seconds)).perSecond,
        },
      ],
      rounds,
      say,
    )

    const toLone = { name: 'plantstore / lone transactions', unit: '×', goal: 0.65, floor: 0.45 } as const
    return {
      figures: [
        { name: 'lone', unit: 'transactions/s', rounds: measured('lone') },
        { name: 'plantstore', unit: 'requests/s', rounds: measured('plantstore') },
      ],
      claims: [{ ...toLone, rounds: ratios(measured('plantstore'), measured('lone')) }],
    }
  },
}
