import { join } from 'node:path'
import { requireSameAnswers } from '../answers.ts'
import {
  countStatements,
  countStoredPlants,
  type Executed,
  requireDatabaseServer,
  seedDatabase,
} from '../database-server.ts'
import { makeDatabase } from '../databases.ts'
import { CONNECTIONS, createLoad, type Load, listLoad, measureRate, runWrk } from '../load/wrk.ts'
import type { Goal } from '../results.ts'
import { compareRates } from '../rounds.ts'
import { type Server, startContestant, startPlantstore } from '../servers.ts'
import { median } from '../statistics.ts'
import type { Bench, Row } from './row.ts'

/** The number of statements that `pg-trips` shows, the most frequent first. */
const SHOWN = 4

interface Race {
  readonly name: string
  readonly title: string
  readonly load: (tokensFile: string) => Load
  /** Whether each request of the load creates a plant. */
  readonly isWrite: boolean
  readonly goal: Goal
}

const startFastify = ({ workspace }: Bench, url: string) =>
  startContestant(workspace, 'fastify', ['node', join(import.meta.dir, '../contestants/fastify.js'), url])

/** The service and Fastify, each on its own copy of one database, and the service on SQLite. */
const race = ({ name, title, load, isWrite, goal }: Race): Row => ({
  name,
  title,
  async run(bench) {
    const { workspace } = bench
    const { cpuMs } = requireDatabaseServer(bench)
    const seed = await seedDatabase(workspace, requireDatabaseServer(bench), 1000)
    const urls = [await seed.copy(), await seed.copy()] as const
    const servers = [await startPlantstore(workspace, urls[0]), await startFastify(bench, urls[1])]
    await requireSameAnswers(servers, seed.token)
    const file = await makeDatabase(workspace.file('sqlite.db'), { users: 1, plantsPerUser: 1000 })
    const onSqlite = { ...(await startPlantstore(workspace, file.path)), name: 'plantstore on SQLite' }

    const shares = new Map<string, number[]>()
    const { figures, ratio } = await compareRates(
      bench,
      [
        ...servers.map((server, index) => ({
          name: server.name,
          server,
          load: load(seed.tokensFile),
          ...(isWrite && { count: () => countStoredPlants(urls[index] ?? '') }),
        })),
        { name: onSqlite.name, server: onSqlite, load: load(file.tokensFile) },
      ],
      async (space, server, ...rest) => {
        const [startMs, startCpuMs] = [performance.now(), cpuMs?.() ?? 0]
        const rate = await measureRate(space, server, ...rest)
        const share = ((cpuMs?.() ?? 0) - startCpuMs) / (performance.now() - startMs)
        shares.set(server.name, [...(shares.get(server.name) ?? []), share])
        return rate
      },
    )
    const claim = { name: 'plantstore / fastify', unit: '×', ...goal } as const
    const percents = [...shares].map(([server, all]) => `under ${server} ${Math.round(median(all) * 100)} %`)
    return {
      figures,
      claims: [{ ...claim, rounds: ratio('plantstore', 'fastify') }],
      notes:
        cpuMs === undefined ? [] : [`PostgreSQL used, of the core that it shares with wrk: ${percents.join(', ')}`],
    }
  },
})

/** The rows against Fastify on PostgreSQL. */
export const POSTGRES_RACES: readonly Row[] = [
  race({
    name: 'pg-list',
    title: `list of 20 from PostgreSQL, one user, ${CONNECTIONS} connections`,
    load: listLoad,
    isWrite: false,
    goal: { goal: 1.5, floor: 1.2 },
  }),
  race({
    name: 'pg-create',
    title: `create in PostgreSQL, ${CONNECTIONS} connections, durable`,
    load: createLoad,
    isWrite: true,
    goal: { goal: 3, floor: 2 },
  }),
]

/** The statements that PostgreSQL executes for each request. */
export const pgTrips: Row = {
  name: 'pg-trips',
  title: `statements that PostgreSQL executes for each request, ${CONNECTIONS} connections`,
  async run(bench) {
    const { workspace, seconds, rounds, say } = bench
    const server = requireDatabaseServer(bench)
    const seed = await seedDatabase(workspace, server, 1000)
    const [plantstore, fastify] = [await startPlantstore(workspace, seed.url), await startFastify(bench, seed.url)]
    const list = { name: 'a list', load: listLoad(seed.tokensFile) }
    const create = { name: 'a create', load: createLoad(seed.tokensFile) }
    const notes: string[] = []

    const count = async ({ name, load }: typeof list, target: Server): Promise<number[]> => {
      const perRequest: number[] = []
      for (let round = 0; round < rounds; round++) {
        say(`round ${round + 1} of ${rounds}: ${name} by ${target.name}`)
        let answered = 0
        const executed = await countStatements(server, seed.url, async () => {
          answered = (await runWrk(workspace, target, load, seconds)).answered
        })
        perRequest.push(executed.reduce((sum, { calls }) => sum + calls, 0) / answered)
        if (round === 0) notes.push(`${answered} answers to ${name} by ${target.name}:`, ...describe(executed))
      }
      return perRequest
    }
    const unit = 'statements' as const
    return {
      claims: [
        { name: 'a list, its token known', unit, goal: 1.05, floor: 1.1, rounds: await count(list, plantstore) },
        { name: 'a create', unit, goal: 0.25, floor: 0.5, rounds: await count(create, plantstore) },
      ],
      figures: [
        { name: 'a list by fastify', unit, rounds: await count(list, fastify) },
        { name: 'a create by fastify', unit, rounds: await count(create, fastify) },
      ],
      notes,
    }
  },
}

const describe = (executed: readonly Executed[]): string[] =>
  executed.slice(0, SHOWN).map(({ text, calls }) => `  ${calls} × ${text.slice(0, 90)}`)
