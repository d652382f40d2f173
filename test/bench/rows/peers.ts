import { requireSameAnswers } from '../answers.ts'
import { countPlants, makeDatabase } from '../databases.ts'
import { CONNECTIONS, createLoad, type Load, listLoad } from '../load/wrk.ts'
import { type PeerName, startPeer } from '../peers.ts'
import type { Goal } from '../results.ts'
import { compareRates } from '../rounds.ts'
import { startPlantstore } from '../servers.ts'
import type { Row } from './row.ts'

interface Race {
  readonly name: string
  readonly title: string
  /** Makes the load of one server. */
  readonly load: (tokensFile: string) => Load
  /** Whether each request of the load creates a plant. */
  readonly isWrite: boolean
  readonly goals: Readonly<Partial<Record<PeerName, Goal>>>
}

/** The service against all peers, each on its own copy of one database. */
const race = ({ name, title, load, isWrite, goals }: Race): Row => ({
  name,
  title,
  async run(bench) {
    const { workspace, peers } = bench
    const databaseOf = (server: string) => workspace.file(`${server}.db`)
    const seed = await makeDatabase(databaseOf('plantstore'), { users: 1, plantsPerUser: 1000 })
    for (const peer of peers.present) seed.copy(databaseOf(peer))
    const servers = await Promise.all([
      startPlantstore(workspace, seed.path),
      ...peers.present.map((peer) => startPeer(workspace, peer, databaseOf(peer))),
    ])
    await requireSameAnswers(servers, seed.token)

    const { figures, ratio } = await compareRates(
      bench,
      servers.map((server) => ({
        name: server.name,
        server,
        load: load(seed.tokensFile),
        ...(isWrite && { count: () => countPlants(databaseOf(server.name)) }),
      })),
    )
    const claims = peers.present.flatMap((peer) => {
      const goal = goals[peer]
      const claim = { name: `plantstore / ${peer}`, unit: '×', rounds: ratio('plantstore', peer) } as const
      return goal === undefined ? [] : [{ ...claim, ...goal }]
    })
    return { figures, claims, notes: peers.missing }
  },
})

/** The rows against peers. */
export const RACES: readonly Row[] = [
  race({
    name: 'list',
    title: `list of 20, one user, ${CONNECTIONS} connections`,
    load: listLoad,
    isWrite: false,
    goals: { axum: { goal: 2.8, floor: 2 }, go: { goal: 6, floor: 4 }, elysia: { goal: 2.5, floor: 1.5 } },
  }),
  race({
    name: 'create',
    title: `create, ${CONNECTIONS} connections, durable`,
    load: createLoad,
    isWrite: true,
    goals: { axum: { goal: 8, floor: 5 }, go: { goal: 10, floor: 6 }, elysia: { goal: 10, floor: 6 } },
  }),
  race({
    name: 'create-one',
    title: 'create, 1 connection, durable',
    load: (tokensFile) => createLoad(tokensFile, 1),
    isWrite: true,
    goals: { axum: { goal: 0.95, floor: 0.8 }, go: { goal: 1.05, floor: 0.9 } },
  }),
]
