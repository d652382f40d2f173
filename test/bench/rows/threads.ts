import { ALL_CORES } from '../../support/process.ts'
import { countPlants, makeDatabase } from '../databases.ts'
import { CONNECTIONS, createLoad, freshIds, listLoad, pagesLoad } from '../load/wrk.ts'
import { type PeerName, startPeer } from '../peers.ts'
import type { Claim, Figure } from '../results.ts'
import { compareRates } from '../rounds.ts'
import { startPlantstore } from '../servers.ts'
import type { Row } from './row.ts'

const THREADS = [1, 2, 3] as const
const PEERS: readonly PeerName[] = ['axum', 'go']
const PLANTS = 1000
const PLANTS_PER_LIST = 20

/** One, two and three threads that answer, and the peers with two workers. */
export const threads: Row = {
  name: 'threads',
  title: `one, two and three threads on two cores with their load, ${CONNECTIONS} connections`,
  async run(bench) {
    const { workspace, peers } = bench
    const seed = await makeDatabase(workspace.file('seed.db'), { users: 1, plantsPerUser: PLANTS })
    const { tokensFile } = seed
    const copyOf = (name: string) => seed.copy(workspace.file(`${name}.db`))
    const own = await Promise.all(
      THREADS.map(async (count) => {
        const path = copyOf(`${count} threads`)
        const server = await startPlantstore(workspace, path, { cores: ALL_CORES, threads: count })
        return { name: `${count} threads`, path, server }
      }),
    )
    const others = await Promise.all(
      PEERS.filter((peer) => peers.present.includes(peer)).map(async (name) => {
        const path = copyOf(name)
        return { name, path, server: await startPeer(workspace, name, path, ALL_CORES) }
      }),
    )
    // The creates of all works are in the same databases.
    const firstId = freshIds()
    const all = [...own, ...others]
    const pages = pagesLoad(tokensFile, 0, PLANTS - PLANTS_PER_LIST)
    const works = [
      { work: 'list', load: listLoad(tokensFile), goals: [1.2, 1.4], servers: all },
      { work: 'list, never the same', load: pages, goals: [1.15, 1.3], servers: own },
      { work: 'create', load: createLoad(tokensFile, CONNECTIONS, 1, firstId), goals: [1, 1], servers: all },
      {
        work: 'nine lists and a create',
        ...{ load: createLoad(tokensFile, CONNECTIONS, 10, firstId), goals: [1.1], servers: own },
      },
    ]
    const figures: Figure[] = []
    const claims: Claim[] = []
    for (const { work, load, goals, servers } of works) {
      const one = `${work}, 1 threads`
      const loaded = servers.map(({ name, path, server }) => ({
        ...{ name: `${work}, ${name}`, server, load: { ...load, isOnAllCores: true } },
        ...(work === 'create' && { count: () => countPlants(path) }),
      }))
      const result = await compareRates(
        bench,
        loaded,
        [
          ...goals.map((goal, index) => [`${work}, ${index + 2} threads`, one, { goal, floor: goal - 0.2 }] as const),
          ...(work === 'list' ? [['list, 2 threads', 'list, axum', { goal: 2.3, floor: 1.5 }] as const] : []),
        ],
        [[`${work}, 2 threads`, one, { goal: 1.1, floor: 1.3 }]],
      )
      figures.push(...result.figures)
      claims.push(...result.claims)
    }
    return { figures, claims, notes: peers.missing }
  },
}
