import { makeDatabase } from '../databases.ts'
import { createLoad, DELETES_PER_SECOND_MAX, deleteLoad, withWarmUpSeconds } from '../load/wrk.ts'
import { startPlantstore } from '../servers.ts'
import { startBareEcho } from './bare.ts'
import { compareRates } from './rates.ts'
import type { Row } from './row.ts'
import { watchWrites } from './written.ts'

/** Durable deletes, against creates on a bare server that echoes. */
export const deleteRow: Row = {
  name: 'delete',
  title: 'delete, 64 connections, durable',
  async run(bench) {
    const { workspace, rounds, seconds } = bench
    const plantsPerUser = rounds * withWarmUpSeconds(seconds) * DELETES_PER_SECOND_MAX
    const seed = await makeDatabase(workspace.file('delete.db'), { users: 1, plantsPerUser })
    const plantstore = await startPlantstore(workspace, seed.path)
    const bare = await startBareEcho(bench, plantstore, seed.token)

    const check = watchWrites(seed.path)
    const { figures, ratio, answered } = await compareRates(bench, [
      { name: 'bare', server: bare, load: createLoad(seed.tokensFile) },
      { name: 'plantstore', server: plantstore, load: deleteLoad(seed.tokensFile) },
    ])
    check('plantstore', answered('plantstore'), rounds)

    const toBare = { name: 'plantstore / bare echo', unit: '×', goal: 0.5, floor: 0.38 } as const
    return { figures, claims: [{ ...toBare, rounds: ratio('plantstore', 'bare') }] }
  },
}
