import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { TOKEN_CHANGES_SEEN_WITHIN_MS } from '../../../src/domain/store.ts'
import { createApp } from '../../../src/http/app.ts'
import type { OpenOptions } from '../../../src/store/database.ts'
import { openStore } from '../../../src/store/open.ts'
import { appOptions } from '../../support/app.ts'
import { administer, makeDatabase, runScript } from '../../support/postgres.ts'
import { type Cluster, startCluster } from '../../support/postgres-cluster.ts'
import { OWN_POSTGRES } from '../../support/postgres-system.ts'
import { lacks } from '../../support/requirement.ts'
import { createToken } from '../../support/tokens.ts'
import { until } from '../../support/until.ts'
import { createUser } from '../fixtures.ts'
import { failTest } from './open-database.ts'

const CREATES = 512
/** Clients, each of which waits for its answer before it sends the next request. */
const CLIENTS = 64
/** How often a server reads the stamp of tokens while requests come. */
const STAMP_READS_PER_SECOND = 4
/** Texts of statements that write plants, and of those that a quota may need. */
const CREATE = /insert into plantstore\.plants/
const COUNT = /count\(\*\) as plants/
const LOCK_USERS = /from plantstore\.users .* for update/

describe.skipIf(lacks(OWN_POSTGRES))('a service on PostgreSQL', () => {
  let cluster: Cluster
  let lastId = 0

  beforeAll(async () => {
    // Autovacuum would renew the statistics of a table, and with them its plans.
    cluster = await startCluster({
      shared_preload_libraries: 'pg_stat_statements',
      'pg_stat_statements.track_planning': 'on',
      autovacuum: 'off',
    })
    await runScript(cluster.url, 'create extension pg_stat_statements')
  })
  afterAll(() => cluster?.[Symbol.dispose]())

  /** A service whose statements are counted. */
  async function startCounted(options: OpenOptions = {}) {
    const store = await openStore(cluster.url, failTest, options)
    const app = createApp(appOptions({ store }))
    const { text: token } = await createToken(store)
    const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
    const request = async (path: string, init: RequestInit = {}) =>
      (await app(new Request(`http://localhost${path}`, { ...init, headers }))).status
    const create = () => request('/plants', { method: 'POST', body: JSON.stringify({ id: ++lastId, name: 'Fern' }) })
    return {
      list: () => request('/plants?limit=20'),
      create,
      put: (id: number) => request(`/plants/${id}`, { method: 'PUT', body: '{"name":"Ivy"}' }),
      get: (id: number) => request(`/plants/${id}`),
      remove: (id: number) => request(`/plants/${id}`, { method: 'DELETE' }),
      /** Creates many plants, which many clients send at once. */
      createMany: () =>
        Promise.all(
          Array.from({ length: CLIENTS }, async () => {
            for (let count = 0; count < CREATES / CLIENTS; count++) expect(await create()).toBe(200)
          }),
        ),
      /** Returns a function that counts the statements with a text, and how long `work` took. */
      async count(work: () => Promise<unknown>) {
        const startedMs = performance.now()
        let tookMs = 0
        const executed = await countStatements(cluster, cluster.url, async () => {
          await work()
          tookMs = performance.now() - startedMs
        })
        const own = executed.filter(({ text }) => text.includes('plantstore.') && !text.includes('pg_stat'))
        const calls = (pattern: RegExp): number =>
          own.reduce((sum, { text, calls }) => sum + (pattern.test(text) ? calls : 0), 0)
        const stampReads = calls(/select tokens_stamp/)
        // A writer gets a new entry of the ledger after 1000 groups.
        const kept = own.filter(({ text }) => !/select tokens_stamp|plantstore\.writers (?:where id|\(id)/.test(text))
        const plans = kept.reduce((sum, each) => sum + each.plans, 0)
        return { statements: calls(/^/) - stampReads, stampReads, calls, plans, tookMs }
      },
      [Symbol.asyncDispose]: () => store.close(),
    }
  }

  test('sends one statement per list of a known token', async () => {
    await using service = await startCounted()
    await service.create()
    await until('the token is known', async (see) => see(await service.count(service.list)).statements === 1)

    let lists = 0
    const { statements, stampReads, tookMs } = await service.count(async () => {
      const endMs = performance.now() + 1.2 * TOKEN_CHANGES_SEEN_WITHIN_MS
      for (; performance.now() < endMs; lists++) expect(await service.list()).toBe(200)
    })

    // On a busy machine the stamp grows too old, about once a second. Then a list also reads its token.
    const seconds = Math.ceil(tookMs / 1000)
    expect(statements).toBeGreaterThanOrEqual(lists)
    expect(statements).toBeLessThanOrEqual(lists + seconds)
    expect(stampReads).toBeLessThanOrEqual(1 + seconds * STAMP_READS_PER_SECOND)
  })

  test('sends less than a quarter of a statement per create of many clients, and none for a quota', async () => {
    await using service = await startCounted()
    await service.create()

    const { statements, calls } = await service.count(service.createMany)

    expect(statements).toBeLessThan(CREATES / 4)
    expect(calls(CREATE)).toBeGreaterThan(1)
    expect([calls(COUNT), calls(LOCK_USERS)]).toEqual([0, 0])
  })

  test('locks the users and counts their plants once for each group of creates with a quota', async () => {
    await using service = await startCounted({ quotaPlants: 1_000_000 })
    const { calls } = await service.count(service.createMany)

    const groups = calls(CREATE)
    expect(groups).toBeGreaterThan(1)
    expect([calls(COUNT), calls(LOCK_USERS)]).toEqual([groups, groups])
  })

  test('counts no plants for a put that replaces one', async () => {
    await using service = await startCounted({ quotaPlants: 1_000_000 })
    await service.create()

    const { calls } = await service.count(() => service.put(lastId))

    expect([calls(COUNT), calls(LOCK_USERS), calls(CREATE)]).toEqual([0, 1, 1])
  })

  test.each([[{}], [{ quotaPlants: 1_000_000 }]])(
    'keeps the plans of all requests on a large table: %j',
    async (options) => {
      await using service = await startCounted(options)
      await runScript(cluster.url, LARGE_TABLES)
      const { create, put, list, get, remove } = service
      const requests = [create, () => put(++lastId), () => put(lastId), list, () => get(lastId), () => remove(lastId--)]
      const requestAll = async () => {
        for (const request of requests)
          for (let count = 0; count < 100; count++) expect(await request()).toBeLessThan(300)
      }

      // PostgreSQL chooses for each connection, once it has planned a statement five times.
      await until('a round plans nothing', async () => (await service.count(requestAll)).plans === 0)
    },
  )

  test('finds the plants of puts and deletes by their keys, although it planned them for a small table', async () => {
    await using database = await makeDatabase({ server: cluster.url })
    const store = await openStore(database.url, failTest)
    const user = await createUser(store, 'me')
    const writeAll = async () => {
      for (const name of ['Fern', 'Ivy']) await store.putPlant(user, { id: 0n, name })
      await store.deletePlant(user, 0n)
    }
    for (let round = 0; round < 10; round++) await writeAll()
    await runScript(database.url, `${INSERT_PLANTS} select ${user}, id, 'Fern' from generate_series(1, 100000) as id`)

    const executed = await countStatements(cluster, database.url, writeAll)
    await store.close()

    const writes = executed.filter(({ text }) => text.includes('gate'))
    expect(writes.map(({ calls, plans }) => [calls, plans])).toEqual([
      [2, 0],
      [1, 0],
    ])
    // The table has more than 500.
    for (const { pages, calls } of writes) expect(pages / calls).toBeLessThan(100)
  })
})

const INSERT_PLANTS = 'insert into plantstore.plants (user_id, id, name)'
/** Makes 10000 users, and a user with 100000 plants. With such statistics, a plan for one plant looks cheap. */
const LARGE_TABLES = `insert into plantstore.users (id, name, created_at_ms)
    select id, 'user ' || id, 0 from generate_series(1001, 11000) as id on conflict do nothing;
  ${INSERT_PLANTS} select 1001, id, 'Fern' from generate_series(1, 100000) as id on conflict do nothing;
  analyze`

/** Runs `work` and counts the statements of a database meanwhile, the most frequent first: their executions, plans, and pages that they took. */
async function countStatements({ url }: Cluster, database: string, work: () => Promise<void>) {
  await administer(url, (sql) => sql.unsafe('select pg_stat_statements_reset()'))
  await work()
  return administer(url, async (sql) => {
    const rows = await sql
      .unsafe(
        `select query, sum(calls), sum(plans), sum(shared_blks_hit + shared_blks_read)
         from pg_stat_statements join pg_database on pg_database.oid = dbid
         where datname = $1 group by query order by 2 desc`,
        [new URL(database).pathname.slice(1)],
      )
      .values()
    return [...rows].map(([text, ...counts]) => {
      const [calls = 0, plans = 0, pages = 0] = counts.map(Number)
      return { text: String(text).replace(/\s+/g, ' '), calls, plans, pages }
    })
  })
}
