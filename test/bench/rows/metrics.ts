import { makeDatabase } from '../databases.ts'
import { createLoad, listLoad } from '../load/wrk.ts'
import { startPlantstore } from '../servers.ts'
import { compareRates } from './rates.ts'
import type { Row } from './row.ts'

/** What it costs to count for --ops-listen. */
export const metrics: Row = {
  name: 'metrics',
  title: 'list of 20 and create, one user, 64 connections, with --ops-listen against without',
  async run(bench) {
    const { workspace } = bench
    const seed = await makeDatabase(workspace.file('off.db'), { users: 1, plantsPerUser: 1000 })
    const on = await startPlantstore(workspace, seed.copy(workspace.file('on.db')), { hasMetrics: true })
    const off = await startPlantstore(workspace, seed.path)

    const servers = [
      { state: 'off', server: off },
      { state: 'on', server: on },
    ]
    const { figures, ratio } = await compareRates(
      bench,
      servers.flatMap(({ state, server }) => [
        { name: `list, ${state}`, server, load: listLoad(seed.tokensFile) },
        { name: `create, ${state}`, server, load: createLoad(seed.tokensFile) },
      ]),
    )

    const toOff = { unit: '×', goal: 0.97, floor: 0.94 } as const
    return {
      figures,
      claims: ['list', 'create'].map((operation) => ({
        ...toOff,
        name: `${operation}, on / off`,
        rounds: ratio(`${operation}, on`, `${operation}, off`),
      })),
    }
  },
}
