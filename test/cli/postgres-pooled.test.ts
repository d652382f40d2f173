import { describe, expect, test } from 'bun:test'
import { runPlantstore, serve } from '../support/executable.ts'
import { administer, makeDatabase, POSTGRES_SERVER } from '../support/postgres.ts'
import { lacks } from '../support/requirement.ts'
import { FOREIGN_VARIABLES } from './support/foreign-variables.ts'
import { PGBOUNCER, startPgBouncer } from './support/pgbouncer.ts'
import { createPlant, listNames, statusOf } from './support/service-client.ts'

describe.skipIf(lacks(POSTGRES_SERVER, PGBOUNCER))('servers behind PgBouncer', () => {
  test('share three connections without prepared statements or variables of the environment, and answer as ever', async () => {
    await using database = await makeDatabase({ isEmpty: true })
    await using pooler = await startPgBouncer(database.url, 3)
    const flags = ['--database-prepare', 'false']
    const created = await runPlantstore(['token', 'create', '--user', 'me', '--database', pooler.url, ...flags])
    const token = created.stdout.trim()
    await using one = await serve(pooler.url, flags)
    await using two = await serve(pooler.url, flags, { env: FOREIGN_VARIABLES })
    // Many more at once than connections, and few enough that a busy machine answers them in time.
    const ids = Array.from({ length: 60 }, (_, id) => id)

    const statuses = await Promise.all(ids.flatMap((id) => [createPlant(one, token, id), createPlant(two, token, id)]))
    const outcomes = ids.map((id) => statuses.slice(2 * id, 2 * id + 2).sort())
    const deleted = await Promise.all(
      ids.slice(30).map(async (id) => (await one.request('DELETE', `/plants/${id}`, { token })).status),
    )

    expect(outcomes).toEqual(ids.map(() => [200, 409]))
    expect(deleted).toEqual(ids.slice(30).map(() => 204))
    expect(await listNames(two, token)).toEqual(ids.slice(0, 30).map((id) => `Fern ${id}`))
    expect(await statusOf(two, '/readyz')).toBe(200)
    const connections = await administer(database.url, (sql) =>
      sql
        .unsafe(`select count(*) from pg_stat_activity where datname = '${database.name}' and pid <> pg_backend_pid()`)
        .values(),
    )
    expect(connections[0]?.[0]).toBeLessThanOrEqual(3n)
    expect([await one.end(), await two.end()]).toEqual([0, 0])
  })
})
