import { requireSameAnswers } from '../answers.ts'
import { countStoredPlants, seedDatabase } from '../database-server.ts'
import { makeDatabase } from '../databases.ts'
import { CONNECTIONS, createLoad } from '../load/wrk.ts'
import { startContestant, startPlantstore } from '../servers.ts'
import { compareOnServer, requireDatabaseServer } from './pg-rates.ts'
import type { Row } from './row.ts'
import { requireWritten } from './written.ts'

/** Durable creates on PostgreSQL: the service and Fastify. */
export const pgCreate: Row = {
  name: 'pg-create',
  title: `create in PostgreSQL, ${CONNECTIONS} connections, durable`,
  async run(bench) {
    const { workspace, rounds } = bench
    const server = requireDatabaseServer(bench)
    const seed = await seedDatabase(workspace, server, 100)
    const urls = { plantstore: await seed.copy(), fastify: await seed.copy() }
    const plantstore = await startPlantstore(workspace, urls.plantstore)
    const fastify = await startContestant(workspace, 'fastify', ['node', 'fastify-pg.js'], urls.fastify)
    await requireSameAnswers([plantstore, fastify], seed.token)
    const file = await makeDatabase(workspace.file('sqlite.db'), { users: 1, plantsPerUser: 100 })
    const onSqlite = { ...(await startPlantstore(workspace, file.path)), name: 'plantstore on SQLite' }

    const before = await countStoredPlants(seed.url)
    const { figures, ratio, answered, notes } = await compareOnServer(bench, [
      ...[plantstore, fastify].map((each) => ({ name: each.name, server: each, load: createLoad(seed.tokensFile) })),
      { name: onSqlite.name, server: onSqlite, load: createLoad(file.tokensFile) },
    ])
    for (const [name, url] of Object.entries(urls)) {
      requireWritten(name, answered(name), (await countStoredPlants(url)) - before, rounds)
    }

    return {
      figures,
      notes,
      claims: [{ name: 'plantstore / fastify', unit: '×', goal: 3, floor: 2, rounds: ratio('plantstore', 'fastify') }],
    }
  },
}
