import { requireSameAnswers } from '../answers.ts'
import { seedDatabase } from '../database-server.ts'
import { makeDatabase } from '../databases.ts'
import { listLoad } from '../load/wrk.ts'
import { startContestant, startPlantstore } from '../servers.ts'
import { compareOnServer, requireDatabaseServer } from './pg-rates.ts'
import type { Row } from './row.ts'

/** A list of one user on PostgreSQL: the service and Fastify. */
export const pgList: Row = {
  name: 'pg-list',
  title: 'list of 20 from PostgreSQL, one user, 64 connections',
  async run(bench) {
    const { workspace } = bench
    const server = requireDatabaseServer(bench)
    const seed = await seedDatabase(workspace, server, 1000)
    const [ours, theirs] = [await seed.copy(), await seed.copy()]
    const plantstore = await startPlantstore(workspace, ours)
    const fastify = await startContestant(workspace, 'fastify', ['node', 'fastify-pg.js'], theirs)
    await requireSameAnswers([plantstore, fastify], seed.token)
    const file = await makeDatabase(workspace.file('sqlite.db'), { users: 1, plantsPerUser: 1000 })
    const onSqlite = { ...(await startPlantstore(workspace, file.path)), name: 'plantstore on SQLite' }

    const { figures, ratio, notes } = await compareOnServer(bench, [
      ...[plantstore, fastify].map((each) => ({ name: each.name, server: each, load: listLoad(seed.tokensFile) })),
      { name: onSqlite.name, server: onSqlite, load: listLoad(file.tokensFile) },
    ])

    return {
      figures,
      notes,
      claims: [
        { name: 'plantstore / fastify', unit: '×', goal: 1.5, floor: 1.2, rounds: ratio('plantstore', 'fastify') },
      ],
    }
  },
}
