import { makeDatabase } from '../databases.ts'
import { createLoad, listLoad } from '../load/wrk.ts'
import { startPlantstore } from '../servers.ts'
import { compareRates } from './rates.ts'
import type { Row } from './row.ts'

/** The difference is smaller than the noise between seconds. Many short measurements close to each other show it. */
const LOOKS_PER_ROUND = 8
const LOOK_SECONDS = 1

/** The cost of counting for --metrics-listen. */
export const metrics: Row = {
  name: 'metrics',
  title: 'list of 20 and create, one user, 64 connections, with --metrics-listen against without',
  async run(bench) {
    const { workspace } = bench
    const seed = await makeDatabase(workspace.file('off.db'), { users: 1, plantsPerUser: 1000 })
    const on = await startPlantstore(workspace, seed.copy(workspace.file('on.db')), { hasMetrics: true })
    const off = await startPlantstore(workspace, seed.path)

    const loads = { list: listLoad(seed.tokensFile), create: createLoad(seed.tokensFile) }
    const { figures, ratio } = await compareRates(
      { ...bench, rounds: bench.rounds * LOOKS_PER_ROUND, seconds: LOOK_SECONDS },
      Object.entries(loads).flatMap(([operation, load]) => [
        { name: `${operation}, off`, server: off, load },
        { name: `${operation}, on`, server: on, load },
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
