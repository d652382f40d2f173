import { requireSameAnswers } from '../answers.ts'
import { countStoredPlants, requireDatabaseServer, seedDatabase } from '../database-server.ts'
import { countPlants, makeDatabase } from '../databases.ts'
import { CONNECTIONS, createLoad, type Load, listLoad } from '../load/wrk.ts'
import { startPeer } from '../peers.ts'
import type { Goal } from '../results.ts'
import { ratesRow } from '../rounds.ts'
import { type Server, startPlantstore } from '../servers.ts'
import { median } from '../statistics.ts'
import type { Bench, Row } from './row.ts'

const CONTENT = { users: 1, plantsPerUser: 1000 }

/** A server with its own copy of one database. */
interface Entrant {
  readonly server: Server
  readonly token: string
  readonly tokensFile: string
  readonly count: () => number | Promise<number>
}

interface Race extends Pick<Row, 'name' | 'title'> {
  readonly enter: (bench: Bench) => Promise<readonly Entrant[]>
  /** Makes the load of one server. */
  readonly load: (tokensFile: string) => Load
  /** Whether each request of the load creates a plant. */
  readonly isWrite: boolean
  readonly goals: Readonly<Record<string, Goal>>
}

/** The service against its peers. */
const race = ({ name, title, enter, load, isWrite, goals }: Race): Row =>
  ratesRow({
    name,
    title,
    async contestants(bench) {
      const entrants = await enter(bench)
      await requireSameAnswers(entrants)
      return entrants.map(({ server, tokensFile, count }) => ({
        ...{ name: server.name, server, load: load(tokensFile), databaseCpuMs: bench.databaseServer?.cpuMs },
        ...(isWrite && { count }),
      }))
    },
    claims: Object.entries(goals).map(([peer, goal]) => ['plantstore', peer, goal] as const),
    notes(measured, { peers, databaseServer }) {
      if (databaseServer?.cpuMs === undefined) return peers.missing
      const shares = ['plantstore', 'fastify'].map((server) => {
        const share = median(measured(server).map(({ databaseBusy }) => databaseBusy))
        return `under ${server} ${Math.round(share * 100)} %`
      })
      return [`PostgreSQL used, of the core that it shares with wrk: ${shares.join(', ')}`]
    },
  })

/** The service and the peers that could be built, on files. */
async function enterOnFiles({ workspace, peers }: Bench): Promise<readonly Entrant[]> {
  const seed = await makeDatabase(workspace.file('plantstore.db'), CONTENT)
  const copies = peers.present.map((peer) => ({ peer, path: seed.copy(workspace.file(`${peer}.db`)) }))
  const enter = (server: Server, path: string): Entrant => ({ ...seed, server, count: () => countPlants(path) })
  return Promise.all([
    startPlantstore(workspace, seed.path).then((server) => enter(server, seed.path)),
    ...copies.map(async ({ peer, path }) => enter(await startPeer(workspace, peer, path), path)),
  ])
}

/** The service and Fastify on PostgreSQL, and the service on SQLite. */
async function enterOnPostgres(bench: Bench): Promise<readonly Entrant[]> {
  const { workspace } = bench
  const seed = await seedDatabase(workspace, requireDatabaseServer(bench), CONTENT.plantsPerUser)
  const [ours, theirs] = [await seed.copy(), await seed.copy()]
  const file = await makeDatabase(workspace.file('sqlite.db'), CONTENT)
  const enter = (server: Server, url: string): Entrant => ({ ...seed, server, count: () => countStoredPlants(url) })
  const onSqlite = { ...(await startPlantstore(workspace, file.path)), name: 'plantstore on SQLite' }
  return [
    enter(await startPlantstore(workspace, ours), ours),
    enter(await startPeer(workspace, 'fastify', theirs), theirs),
    { ...file, server: onSqlite, count: () => countPlants(file.path) },
  ]
}

/** The rows against peers. */
export const RACES: readonly Row[] = [
  race({
    name: 'list',
    title: `list of 20, one user, ${CONNECTIONS} connections`,
    ...{ enter: enterOnFiles, load: listLoad, isWrite: false },
    goals: { axum: { goal: 2.8, floor: 2 }, go: { goal: 6, floor: 4 }, elysia: { goal: 2.5, floor: 1.5 } },
  }),
  race({
    name: 'create',
    title: `create, ${CONNECTIONS} connections, durable`,
    ...{ enter: enterOnFiles, load: createLoad, isWrite: true },
    goals: { axum: { goal: 8, floor: 5 }, go: { goal: 10, floor: 6 }, elysia: { goal: 10, floor: 6 } },
  }),
  race({
    name: 'create-one',
    title: 'create, 1 connection, durable',
    ...{ enter: enterOnFiles, load: (tokensFile) => createLoad(tokensFile, 1), isWrite: true },
    goals: { axum: { goal: 0.95, floor: 0.8 }, go: { goal: 1.05, floor: 0.9 } },
  }),
]

/** The rows against Fastify on PostgreSQL. */
export const POSTGRES_RACES: readonly Row[] = [
  race({
    name: 'pg-list',
    title: `list of 20 from PostgreSQL, one user, ${CONNECTIONS} connections`,
    ...{ enter: enterOnPostgres, load: listLoad, isWrite: false },
    goals: { fastify: { goal: 1.5, floor: 1.2 } },
  }),
  race({
    name: 'pg-create',
    title: `create in PostgreSQL, ${CONNECTIONS} connections, durable`,
    ...{ enter: enterOnPostgres, load: createLoad, isWrite: true },
    goals: { fastify: { goal: 3, floor: 2 } },
  }),
]
