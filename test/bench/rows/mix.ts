import { makeDatabase } from '../databases.ts'
import { listLoad, mixLoad } from '../load/wrk.ts'
import { startPlantstore } from '../servers.ts'
import { startBareList } from './bare.ts'
import { compareRates } from './rates.ts'
import type { Row } from './row.ts'

/** Lists with creates between them, against lists of a bare server. */
export const mix: Row = {
  name: 'mix',
  title: '90 % list of 20, 10 % create, 1 000 users in random order, 64 connections',
  async run(bench) {
    const { workspace } = bench
    const seed = await makeDatabase(workspace.file('mix.db'), { users: 1000, plantsPerUser: 100 })
    const plantstore = await startPlantstore(workspace, seed.path)
    const bare = await startBareList(bench, plantstore, seed.token)

    const { figures, ratio } = await compareRates(bench, [
      { name: 'bare', server: bare, load: listLoad(seed.tokensFile) },
      { name: 'plantstore', server: plantstore, load: mixLoad(seed.tokensFile) },
    ])

    const toBare = { name: 'plantstore / bare list', unit: '×', goal: 0.4, floor: 0.27 } as const
    return { figures, claims: [{ ...toBare, rounds: ratio('plantstore', 'bare') }] }
  },
}
