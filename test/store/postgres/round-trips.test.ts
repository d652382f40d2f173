import { describe, expect, test } from 'bun:test'
import { TOKEN_CHANGES_SEEN_WITHIN_MS } from '../../../src/domain/store.ts'
import { createApp } from '../../../src/http/app.ts'
import { openStore } from '../../../src/store/open.ts'
import { appOptions } from '../../support/app.ts'
import { administer, OWN_POSTGRES, startCluster } from '../../support/postgres.ts'
import { lacks } from '../../support/requirement.ts'
import { createToken } from '../../support/tokens.ts'

const CREATES = 512
/** Clients that each wait for their answer. */
const CLIENTS = 64
/** Asks of the time of the last change of tokens, while requests come. */
const LOOKS_PER_SECOND = 4

/** Counts the statements that a server was sent, by the server's own extension. */
async function startCounting() {
  const cluster = await startCluster({ shared_preload_libraries: 'pg_stat_statements' })
  await administer(cluster.url, (sql) => sql.unsafe('create extension pg_stat_statements').simple())
  const store = await openStore(cluster.url, (error) => {
    throw error
  })
  const app = createApp(appOptions({ store }))
  const { text: token } = await createToken(store)
  const authorization = `Bearer ${token}`
  const request = async (path: string, init: RequestInit = {}) => {
    const headers = { authorization, 'content-type': 'application/json' }
    return (await app(new Request(`http://localhost${path}`, { ...init, headers }))).status
  }
  return {
    list: () => request('/plants?limit=20'),
    create: (id: number) => request('/plants', { method: 'POST', body: JSON.stringify({ id, name: 'Fern' }) }),
    /** How many statements `work` takes, besides looks at changes of tokens; and how many of these there were. */
    async count(work: () => Promise<unknown>) {
      await administer(cluster.url, (sql) => sql.unsafe('select pg_stat_statements_reset()').simple())
      const startedMs = performance.now()
      await work()
      const tookMs = performance.now() - startedMs
      const rows = await administer(cluster.url, (sql) =>
        sql
          .unsafe(
            `select query like 'select tokens_stamp%', sum(calls)::int8 from pg_stat_statements
             where query like '%plantstore.%' and query not like '%pg_stat%' group by 1`,
          )
          .values(),
      )
      const counts = new Map(rows.map(([isLook, calls]: [boolean, bigint]) => [isLook, Number(calls)]))
      return { statements: counts.get(false) ?? 0, looks: counts.get(true) ?? 0, tookMs }
    },
    async [Symbol.asyncDispose]() {
      await store.close()
      cluster[Symbol.dispose]()
    },
  }
}

describe.skipIf(lacks(OWN_POSTGRES))('statements', () => {
  test('are one for a list, of a token that is known', async () => {
    await using service = await startCounting()
    await service.create(1)
    while ((await service.count(service.list)).statements !== 1) await Bun.sleep(5)

    let lists = 0
    const { statements, looks, tookMs } = await service.count(async () => {
      const endMs = performance.now() + 2 * TOKEN_CHANGES_SEEN_WITHIN_MS
      for (; performance.now() < endMs; lists++) expect(await service.list()).toBe(200)
    })

    // Where the machine is so busy that what is known grows old, tokens are looked up again.
    const old = Math.ceil(tookMs / 1000)
    expect(statements).toBeGreaterThanOrEqual(lists)
    expect(statements).toBeLessThanOrEqual(lists + old)
    expect(looks).toBeLessThanOrEqual(1 + old * LOOKS_PER_SECOND)
  })

  test('are far less than one for a create, where many wait', async () => {
    await using service = await startCounting()
    await service.create(0)
    let next = 1

    const { statements } = await service.count(() =>
      Promise.all(
        Array.from({ length: CLIENTS }, async () => {
          while (next <= CREATES) expect(await service.create(next++)).toBe(200)
        }),
      ),
    )

    expect(statements).toBeLessThan(CREATES / 4)
  })
})
