import { describe, expect, test } from 'bun:test'
import { TOKEN_CHANGES_SEEN_WITHIN_MS } from '../../../src/domain/store.ts'
import { createApp } from '../../../src/http/app.ts'
import type { OpenOptions } from '../../../src/store/engine.ts'
import { openStore } from '../../../src/store/open.ts'
import { appOptions } from '../../support/app.ts'
import { administer } from '../../support/postgres.ts'
import { startCluster } from '../../support/postgres-cluster.ts'
import { OWN_POSTGRES } from '../../support/postgres-system.ts'
import { lacks } from '../../support/requirement.ts'
import { createToken } from '../../support/tokens.ts'
import { until } from '../../support/until.ts'
import { failTest } from './open-database.ts'

const CREATES = 512
/** Clients, each of which waits for its answer before it sends the next request. */
const CLIENTS = 64
/** How often a server reads the stamp of tokens while requests come. */
const STAMP_READS_PER_SECOND = 4
/** Texts of statements that write plants, and of those that a quota may need. */
const CREATE = /insert into plantstore\.plants/
const COUNT = /count\(\*\)/
const LOCK_USERS = /from plantstore\.users .* for update/

/** A service on a database server that counts its statements with the extension pg_stat_statements. */
async function startCounted(options: OpenOptions = {}) {
  const cluster = await startCluster({ shared_preload_libraries: 'pg_stat_statements' })
  await administer(cluster.url, (sql) => sql.unsafe('create extension pg_stat_statements').simple())
  const store = await openStore(cluster.url, failTest, options)
  const app = createApp(appOptions({ store }))
  const { text: token } = await createToken(store)
  const authorization = `Bearer ${token}`
  const request = async (path: string, init: RequestInit = {}) => {
    const headers = { authorization, 'content-type': 'application/json' }
    return (await app(new Request(`http://localhost${path}`, { ...init, headers }))).status
  }
  const create = (id: number) => request('/plants', { method: 'POST', body: JSON.stringify({ id, name: 'Fern' }) })
  let next = 1
  return {
    list: () => request('/plants?limit=20'),
    create,
    /** Creates many plants, which many clients send at once. */
    createMany: () =>
      Promise.all(
        Array.from({ length: CLIENTS }, async () => {
          while (next <= CREATES) expect(await create(next++)).toBe(200)
        }),
      ),
    /** Counts the statements that `work` takes, and apart from them the reads of the stamp of tokens. */
    async count(work: () => Promise<unknown>) {
      await administer(cluster.url, (sql) => sql.unsafe('select pg_stat_statements_reset()').simple())
      const startedMs = performance.now()
      await work()
      const tookMs = performance.now() - startedMs
      const rows = await administer(cluster.url, (sql) =>
        sql
          .unsafe(
            `select query, calls from pg_stat_statements where query like '%plantstore.%' and query not like '%pg_stat%'`,
          )
          .values(),
      )
      /** How many statements with such a text were sent. */
      const calls = (text: RegExp): number =>
        rows.reduce((sum: number, [query, count]: [string, bigint]) => sum + (text.test(query) ? Number(count) : 0), 0)
      const stampReads = calls(/^select tokens_stamp/)
      return { statements: calls(/^/) - stampReads, stampReads, calls, tookMs }
    },
    async [Symbol.asyncDispose]() {
      await store.close()
      cluster[Symbol.dispose]()
    },
  }
}

describe.skipIf(lacks(OWN_POSTGRES))('a service on PostgreSQL', () => {
  test('sends one statement per list of a known token', async () => {
    await using service = await startCounted()
    await service.create(1)
    await until('the token is known', async () => (await service.count(service.list)).statements === 1)

    let lists = 0
    const { statements, stampReads, tookMs } = await service.count(async () => {
      const endMs = performance.now() + 2 * TOKEN_CHANGES_SEEN_WITHIN_MS
      for (; performance.now() < endMs; lists++) expect(await service.list()).toBe(200)
    })

    // On a busy machine the stamp grows too old, about once a second. Then a list also reads its token.
    const seconds = Math.ceil(tookMs / 1000)
    expect(statements).toBeGreaterThanOrEqual(lists)
    expect(statements).toBeLessThanOrEqual(lists + seconds)
    expect(stampReads).toBeLessThanOrEqual(1 + seconds * STAMP_READS_PER_SECOND)
  })

  test('sends less than a quarter of a statement per create of many clients', async () => {
    await using service = await startCounted()
    await service.create(0)

    const { statements } = await service.count(service.createMany)

    expect(statements).toBeLessThan(CREATES / 4)
  })

  test('neither counts plants nor locks users for creates without a quota', async () => {
    await using service = await startCounted()
    const { calls } = await service.count(service.createMany)

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
})
