import { describe, expect, test } from 'bun:test'
import { type Store, TOKEN_CHANGES_SEEN_WITHIN_MS } from '../../src/domain/store.ts'
import type { TokenId } from '../../src/domain/token.ts'
import { openStore } from '../../src/store/open.ts'
import { newToken } from '../store/fixtures.ts'
import { runPlantstore, serve } from '../support/executable.ts'
import { scrape } from '../support/metrics.ts'
import { administer, makeDatabase, POSTGRES_SERVER } from '../support/postgres.ts'
import { startCluster } from '../support/postgres-cluster.ts'
import { OWN_POSTGRES } from '../support/postgres-system.ts'
import { lacks } from '../support/requirement.ts'
import { createToken, createTokenIn } from '../support/tokens.ts'
import { until } from '../support/until.ts'
import { FOREIGN_VARIABLES } from './support/foreign-variables.ts'
import { PGBOUNCER, startPgBouncer } from './support/pgbouncer.ts'
import { createPlant, listNames, statusOf } from './support/service-client.ts'

test.skipIf(lacks(POSTGRES_SERVER))('a command says what a database does not support', async () => {
  await using database = await makeDatabase()
  await runPlantstore(['token', 'create', '--user', 'me', '--database', database.url])
  // PostgreSQL cannot lock the rows of such a view.
  await administer(database.url, async (sql) => {
    await sql.unsafe('alter table plantstore.users rename to kept').simple()
    await sql.unsafe('create view plantstore.users as select * from plantstore.kept group by id').simple()
  })

  const refused = await runPlantstore(['user', 'delete', 'me', '--yes', '--database', database.url])

  expect(refused).toMatchObject({
    exitCode: 3,
    stderr: expect.stringMatching(
      /^plantstore: This database does not support what this needs: FOR UPDATE is not allowed/m,
    ),
  })
})

/** What ends the access of user `me`, who has this token. */
const ENDS: readonly (readonly [what: string, end: (store: Store, id: TokenId) => Promise<unknown>])[] = [
  ['a revoked token', (store, id) => store.revokeTokens({ id }, Date.now())],
  ['a token that was replaced without an overlap', (store, id) => store.rotateToken(id, newToken('me'), 0)],
  ['a token of a blocked user', (store) => store.setUserBlock('me', Date.now())],
  ['a token of a deleted user', (store) => store.deleteUser('me')],
]

/** Changes of other users' tokens within the time in which servers see an end. */
const CHANGES = 100
const CHANGE_INTERVAL_MS = TOKEN_CHANGES_SEEN_WITHIN_MS / CHANGES
const METERED = ['--metrics-listen', '127.0.0.1:0']
const CACHE_MISSES = 'plantstore_cache_misses_total{cache="callers"}'

describe.skipIf(lacks(POSTGRES_SERVER))('two processes on one PostgreSQL database', () => {
  test('say when they created the store', async () => {
    await using database = await makeDatabase({ isEmpty: true })
    const create = () => runPlantstore(['token', 'create', '--user', 'me', '--database', database.url])
    const [first, second] = [await create(), await create()]
    await using server = await serve(database.url)

    const [, where] = /^Created a new, empty store: (postgres:\/\/\S+)\.\n/.exec(first.stderr) ?? []
    expect(new URL(where ?? '').pathname).toBe(new URL(database.url).pathname)
    expect(second.stderr).not.toContain('Created a new, empty store')
    expect(server.stdout()).toContain(`"database":"${where}"`)
    expect(server.stdout()).not.toContain('created')
  })

  test('show at once what was written through the other one, and end with exit code 0', async () => {
    await using database = await makeDatabase({ isEmpty: true })
    const token = await createTokenIn(database.url)
    await using one = await serve(database.url)
    // Variables of other programs, like PGDATABASE, must change nothing.
    await using two = await serve(database.url, [], { env: FOREIGN_VARIABLES })

    for (let id = 1; id <= 20; id++) {
      const [writer, reader] = id % 2 === 0 ? [one, two] : [two, one]
      expect(await createPlant(writer, token, id)).toBe(200)
      expect(await listNames(reader, token)).toEqual(Array.from({ length: id }, (_, index) => `Fern ${index + 1}`))
      expect(await createPlant(reader, token, id)).toBe(409)
    }
    expect((await one.request('DELETE', '/plants/1', { token })).status).toBe(204)
    expect((await two.request('DELETE', '/plants/1', { token })).status).toBe(404)

    expect([await one.end(), await two.end()]).toEqual([0, 0])
  })

  test.each(ENDS)('refuse %s in the first request after that time', async (_, end) => {
    await using database = await makeDatabase()
    const store = await openStore(database.url, () => {})
    const { text: token, id } = await createToken(store)
    await using server = await serve(database.url)
    for (let count = 0; count < 3; count++) expect(await statusOf(server, '/plants', token)).toBe(200)

    await end(store, id)
    await store.close()
    // The promise is about time alone: a request meanwhile would make the server learn of the change.
    await Bun.sleep(TOKEN_CHANGES_SEEN_WITHIN_MS)

    expect(await statusOf(server, '/plants', token)).toBe(401)
  })

  test.each(ENDS)('refuse %s within that time, and no other, beside 100 changes of tokens', async (_, end) => {
    await using database = await makeDatabase()
    const [store, busy] = [await openStore(database.url, () => {}), await openStore(database.url, () => {})]
    const { text: token, id } = await createToken(store)
    const { text: yours } = await createToken(store, { user: 'you' })
    await createToken(store, { user: 'they' })
    await using one = await serve(database.url, METERED)
    await using two = await serve(database.url, METERED)
    const statuses = () =>
      Promise.all([one, two].flatMap((server) => [token, yours].map((text) => statusOf(server, '/plants', text))))
    let changes = 0
    /** Makes changes at even intervals, or as fast as a slow machine can. */
    const change = async (count: number) => {
      const startMs = performance.now()
      for (let made = 1; made <= count; made++) {
        await busy.setUserBlock('they', ++changes % 2 === 1 ? Date.now() : undefined)
        await Bun.sleep(startMs + made * CHANGE_INTERVAL_MS - performance.now())
      }
    }
    const misses = () => Promise.all([one, two].map(async (server) => (await scrape(server))[CACHE_MISSES]))
    // The first change of a database makes servers forget every token. Later ones must make them forget the user's tokens alone.
    await change(1)
    // The token ends when both servers answer from their caches.
    for (let known: unknown; !Bun.deepEquals(known, await misses()); ) {
      known = await misses()
      expect(await statuses()).toEqual([200, 200, 200, 200])
    }

    await Promise.all([change(CHANGES / 10), end(store, id)])
    let isChanging = true
    const changing = change(CHANGES).finally(() => {
      isChanging = false
    })
    while (isChanging) await statuses()
    await changing

    expect(await statuses()).toEqual([401, 200, 401, 200])
    for (const each of [store, busy]) await each.close()
  })
})

test.skipIf(lacks(OWN_POSTGRES))(
  'a server that starts before its database listens, and is ready as soon as the database is there',
  async () => {
    using cluster = await startCluster()
    cluster.stop('fast')

    await using server = await serve(cluster.url, ['--first-token'])
    expect([await statusOf(server, '/healthz'), await statusOf(server, '/readyz')]).toEqual([200, 503])
    expect(await statusOf(server, '/plants', 'plst_0')).toBe(401)
    cluster.start()
    await until('the server is ready', async () => (await statusOf(server, '/readyz')) === 200)
    await until('the token is printed', () => server.stderr().includes('list the plants'))

    const token = /plst_\w+/.exec(server.stderr())?.[0] ?? ''
    expect(await createPlant(server, token, 1)).toBe(200)
    expect(await listNames(server, token)).toContain('Fern 1')
    expect(await server.end()).toBe(0)
  },
)

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
