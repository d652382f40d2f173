import { countPlants, makeDatabase } from '../databases.ts'
import { CONNECTIONS, createLoad, freshIds, listLoad, pagesLoad } from '../load/wrk.ts'
import { type PeerName, startPeer } from '../peers.ts'
import type { Claim, Figure } from '../results.ts'
import { compareRates } from '../rounds.ts'
import { startPlantstore } from '../servers.ts'
import { ratios } from '../statistics.ts'
import { LOAD_CORE, SERVER_CORE } from '../workspace.ts'
import type { Row } from './row.ts'

const THREADS = [1, 2, 3] as const
const PEERS: readonly PeerName[] = ['axum', 'go']
/** The servers and the load share both cores. A peer that sees two cores has two workers. */
const CORES = `${SERVER_CORE},${LOAD_CORE}`
const PLANTS = 1000
const PLANTS_PER_LIST = 20

/** One, two and three threads that answer, and the peers with two workers. */
export const threads: Row = {
  name: 'threads',
  title: `one, two and three threads on two cores with their load, ${CONNECTIONS} connections`,
  async run(bench) {
    const { workspace, peers } = bench
    const seed = await makeDatabase(workspace.file('seed.db'), { users: 1, plantsPerUser: PLANTS })
    const copyOf = (name: string) => seed.copy(workspace.file(`${name}.db`))
    const own = await Promise.all(
      THREADS.map(async (count) => {
        const name = `${count} threads`
        const path = copyOf(name)
        return { name, path, server: await startPlantstore(workspace, path, { cores: CORES, threads: count }) }
      }),
    )
    const others = await Promise.all(
      PEERS.filter((peer) => peers.present.includes(peer)).map(async (name) => {
        const path = copyOf(name)
        return { name, path, server: await startPeer(workspace, name, path, CORES) }
      }),
    )
    const { tokensFile } = seed
    // The creates of all works are in the same databases.
    const firstId = freshIds()
    const works = [
      { work: 'list', load: listLoad(tokensFile), goals: [1.2, 1.4], servers: [...own, ...others] },
      { work: 'list, never the same', load: pagesLoad(tokensFile, 0, PLANTS - PLANTS_PER_LIST), goals: [1.15, 1.3] },
      {
        work: 'create',
        load: createLoad(tokensFile, CONNECTIONS, 1, firstId),
        goals: [1, 1],
        isWrite: true,
        servers: [...own, ...others],
      },
      { work: 'nine lists and a create', load: createLoad(tokensFile, CONNECTIONS, 10, firstId), goals: [1.1] },
    ]
    const figures: Figure[] = []
    const claims: Claim[] = []
    for (const { work, load, goals, isWrite = false, servers = own } of works) {
      const rates = await compareRates(
        bench,
        servers.map(({ name, path, server }) => ({
          name: `${work}, ${name}`,
          server,
          load,
          ...(isWrite && { count: () => countPlants(path) }),
        })),
      )
      figures.push(...rates.figures)
      const cpu = (name: string) => rates.measured(`${work}, ${name}`).map(({ cpuUsPerRequest }) => cpuUsPerRequest)
      for (const [index, goal] of goals.entries()) {
        const name = `${THREADS[index + 1]} threads`
        const rounds = rates.ratio(`${work}, ${name}`, `${work}, 1 threads`)
        claims.push({ name: `${work}: ${name} / 1`, unit: '×', goal, floor: goal - 0.2, rounds })
      }
      const rounds = ratios(cpu('2 threads'), cpu('1 threads'))
      claims.push({ name: `${work}: CPU time of a request, 2 threads / 1`, unit: '×', goal: 1.1, floor: 1.3, rounds })
      if (work === 'list' && others.some(({ name }) => name === 'axum')) {
        const against = rates.ratio('list, 2 threads', 'list, axum')
        claims.push({ name: 'list: 2 threads / axum', unit: '×', goal: 2.3, floor: 1.5, rounds: against })
      }
    }
    return { figures, claims, notes: peers.missing }
  },
}
