import { describe, expect, test } from 'bun:test'
import { NOBODY, providerUserName } from '../../../src/domain/token.ts'
import { GROUP_MAX_WRITES } from '../../../src/engine/group-queue.ts'
import { STORE_DEADLINES } from '../../../src/store/database.ts'
import { POSTGRES_SERVER, serverUrl } from '../../support/postgres.ts'
import { startPostgresProxy } from '../../support/postgres-proxy.ts'
import { lacks } from '../../support/requirement.ts'
import { SLACK_MS, stretched } from '../../support/slack.ts'
import { until } from '../../support/until.ts'
import { CREATED_AT_MS, outcomesOf } from '../fixtures.ts'
import { rejectionOf } from '../rejection.ts'
import { openDatabase } from './open-database.ts'

const GROUPS = 3

describe.skipIf(lacks(POSTGRES_SERVER))('first plants in a PostgreSQL database', () => {
  /** A store behind a proxy that holds the statements with plants. */
  async function openHeld(deadlines = stretched(STORE_DEADLINES)) {
    const proxy = startPostgresProxy(await serverUrl())
    const opened = await openDatabase({ by: proxy.by, isServer: true, deadlines })
    let isHeld = false
    proxy.decide((from, bytes) => {
      if (from === 'server' || !bytes.includes('Fern')) return 'pass'
      isHeld = true
      return 'hold'
    })
    return {
      ...opened,
      isHeld: () => isHeld,
      pass: () => proxy.decide(() => 'pass'),
      release: proxy.release,
      createOf(subject: number) {
        const name = providerUserName('https://issuer.example.org', `${subject}`)
        return opened.store.createPlant({ id: NOBODY, name, createdAtMs: CREATED_AT_MS }, { id: 1n, name: 'Fern' })
      },
      async [Symbol.asyncDispose]() {
        await opened[Symbol.asyncDispose]()
        proxy[Symbol.dispose]()
      },
    }
  }

  test('share transactions: those that come during one are all in the next', async () => {
    await using opened = await openHeld()
    const { createOf } = opened
    const first = createOf(0)
    await until('the first one is under way', opened.isHeld)
    const others = Array.from({ length: GROUPS * GROUP_MAX_WRITES }, (_, index) => createOf(1 + index))
    const again = [createOf(0), createOf(1)]
    opened.pass()
    opened.release()

    await Promise.all([first, ...others])
    expect(await outcomesOf(again)).toEqual(['plant_exists', 'plant_exists'])
    const name = "where name like 'oidc.%'"
    expect(await opened.number(`select count(*) from plantstore.users ${name}`)).toBe(1 + others.length)
    expect(await opened.number(`select count(distinct xmin::text) from plantstore.users ${name}`)).toBe(1 + GROUPS)
  })

  test('that are not answered are refused within their time, those behind them too, and leave no user', async () => {
    await using opened = await openHeld(STORE_DEADLINES)
    const { store, createOf } = opened
    const startMs = performance.now()

    const creates = Array.from({ length: GROUP_MAX_WRITES + 1 }, (_, subject) => rejectionOf(createOf(subject)))
    const errors = await Promise.all(creates)

    expect(performance.now() - startMs).toBeLessThan(STORE_DEADLINES.repeatMs + SLACK_MS)
    const failed = errors.slice(0, GROUP_MAX_WRITES).map(() => ({ kind: 'store_failed', outcomeIsUnknown: false }))
    expect(errors).toMatchObject([...failed, { kind: 'store_busy' }])
    opened.pass()
    expect(await store.listUsers()).toHaveLength(1)
    await createOf(0)
    expect(await store.listUsers()).toHaveLength(2)
  })
})
