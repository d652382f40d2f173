import { expect, test } from 'bun:test'
import { providerUserName } from '../../../src/domain/token.ts'
import { REPEAT_MS } from '../../../src/store/postgres/errors.ts'
import { CHANGES_MAX } from '../../../src/store/postgres/versions.ts'
import { POSTGRES_SERVER, serverUrl } from '../../support/postgres.ts'
import { startPostgresProxy } from '../../support/postgres-proxy.ts'
import { lacks } from '../../support/requirement.ts'
import { SLACK_MS } from '../../support/slack.ts'
import { CREATED_AT_MS } from '../fixtures.ts'
import { rejectionOf } from '../rejection.ts'
import { openDatabase } from './open-database.ts'

test.skipIf(lacks(POSTGRES_SERVER))(
  'first plants that a database does not answer are refused within their time, and one too many at once, and leave no user',
  async () => {
    using proxy = startPostgresProxy(await serverUrl())
    await using opened = await openDatabase({ by: proxy.by, isServer: true })
    const createOf = (subject: number) => {
      const user = { name: providerUserName('https://issuer.example.org', `${subject}`), createdAtMs: CREATED_AT_MS }
      return opened.store.createFirstPlant(user, { id: 1n, name: 'Fern' })
    }
    // The first transaction has stored its user by then.
    proxy.decide((from, bytes) => (from === 'client' && bytes.includes('Fern') ? 'hold' : 'pass'))
    let settled = 0
    const startMs = performance.now()

    const creates = Array.from({ length: CHANGES_MAX }, (_, subject) =>
      rejectionOf(createOf(subject)).finally(() => settled++),
    )
    expect(await rejectionOf(createOf(CHANGES_MAX))).toMatchObject({ kind: 'store_busy' })
    expect(settled).toBe(0)
    const [first, ...others] = await Promise.all(creates)

    expect(performance.now() - startMs).toBeLessThan(REPEAT_MS + SLACK_MS)
    expect(first).toMatchObject({ kind: 'store_failed', outcomeIsUnknown: false })
    expect(new Set(others.map((error) => (error as { kind?: string }).kind))).toEqual(new Set(['store_busy']))
    proxy.decide(() => 'pass')
    expect(await opened.store.listUsers()).toHaveLength(1)
    await createOf(0)
    expect(await opened.store.listUsers()).toHaveLength(2)
  },
)
