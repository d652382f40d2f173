import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { TOKEN_CHANGES_SEEN_WITHIN_MS } from '../../../src/domain/store.ts'
import { createApp } from '../../../src/http/app.ts'
import type { OpenOptions } from '../../../src/store/database.ts'
import { openStore } from '../../../src/store/open.ts'
import { countStatements } from '../../bench/database-server.ts'
import { appOptions } from '../../support/app.ts'
import { runScript } from '../../support/postgres.ts'
import { type Cluster, startCluster } from '../../support/postgres-cluster.ts'
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

describe.skipIf(lacks(OWN_POSTGRES))('a service on PostgreSQL', () => {
  let cluster: Cluster
  let lastId = 0

  beforeAll(async () => {
    cluster = await startCluster({ shared_preload_libraries: 'pg_stat_statements' })
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
        return { statements: calls(/^/) - stampReads, stampReads, calls, tookMs }
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
})
