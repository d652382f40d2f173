import { heapStats } from 'bun:jsc'
import { describe, expect, test } from 'bun:test'
import type { Token } from '../../src/domain/token.ts'
import type { RateLimit } from '../../src/http/options.ts'
import { limitRate } from '../../src/http/rate-limit.ts'
import { EXECUTABLE } from '../support/executable.ts'
import { until } from '../support/until.ts'
import { ANSWERED_BEFORE_TOKENS, expectCodes, REFUSED_BY_THEMSELVES, type Row } from './support/answers.ts'
import { expectDescribed } from './support/described.ts'
import { type RequestOptions, type Service, startService } from './support/service.ts'
import { SOCKET_TRANSPORTS } from './support/transports.ts'

const HOUR_MS = 3_600_000
const REFUSAL = {
  error: 42901,
  message: 'This token has made too many requests: wait for as many seconds as Retry-After says.',
}

/** A limit whose period does not end while a test runs. */
const perHour = (requests: number): RateLimit => ({ requests, periodMs: HOUR_MS })

/** The statuses of so many lists, one after the other. */
async function listStatuses(service: Service, count: number, options: RequestOptions = {}): Promise<number[]> {
  const statuses: number[] = []
  while (statuses.length < count) statuses.push((await service.list('?limit=5', options)).status)
  return statuses
}

describe.each(SOCKET_TRANSPORTS)('the rate limit of a token, $name', (transport) => {
  test('takes as many requests as it allows, and refuses all that follow', async () => {
    await using service = await startService(transport, { rateLimit: perHour(3) })

    expect(await listStatuses(service, 3)).toEqual([200, 200, 200])
    for (const [method, path, refused] of [
      ['GET', '/plants', await service.list()],
      ['GET', '/plants/1', await service.get(1)],
      ['POST', '/plants', await service.create({ id: 1, name: 'Fern' })],
      ['DELETE', '/plants/1', await service.delete(1)],
    ] as const) {
      const { status, headers, body } = refused
      expectDescribed(method, path, refused)
      expect({ status, body, type: headers.get('content-type') }).toEqual({
        status: 429,
        body: REFUSAL,
        type: 'application/json',
      })
      expect(headers.get('retry-after')).toMatch(/^(?:3600|35\d\d)$/)
    }
    expect(await service.store.listPlants(1, { after: undefined, limit: 9 })).toEqual({ plants: [], isLast: true })
  })

  test('holds for cached lists, with HEAD and If-None-Match too', async () => {
    await using service = await startService(transport, { rateLimit: perHour(5) })
    const { headers } = await service.list('?limit=5')
    const known = { headers: { 'if-none-match': headers.get('etag') ?? '' } }

    const statuses = [
      await service.list('?limit=5'),
      await service.request('HEAD', '/plants?limit=5'),
      await service.list('?limit=5', known),
      await service.request('HEAD', '/plants?limit=5', known),
      await service.list('?limit=5'),
      await service.request('HEAD', '/plants?limit=5'),
      await service.list('?limit=5', known),
    ].map(({ status }) => status)

    expect(statuses).toEqual([200, 200, 304, 304, 429, 429, 429])
  })

  test('holds for the token, however it is written, and not for its user', async () => {
    await using service = await startService(transport, { rateLimit: perHour(2) })
    const { text: second } = await service.createToken()
    const { text: stranger } = await service.createToken({ user: 'you' })
    const written = ['Bearer', 'bearer', 'BEARER  ', 'bEaReR'].map((scheme) => `${scheme} ${service.token}`)
    const statuses: number[] = []

    for (const authorization of written) {
      statuses.push((await service.list('', { token: null, headers: { authorization } })).status)
    }

    expect(statuses).toEqual([200, 200, 429, 429])
    for (const token of [second, stranger]) expect(await listStatuses(service, 3, { token })).toEqual([200, 200, 429])
  })

  test('counts what a later check refuses, and is checked before it; what is answered without a token does not count', async () => {
    const refusals: Row[] = [
      ...REFUSED_BY_THEMSELVES,
      ['GET', '/plants/7', {}, 40402],
      ['DELETE', '/plants/7', {}, 40402],
    ]
    const uncounted: Row[] = [...ANSWERED_BEFORE_TOKENS, ['GET', '/readyz', {}, 200]]
    await using service = await startService(transport, { rateLimit: perHour(refusals.length), maxBodyBytes: 100 })
    const { text: token } = await service.createToken({ scope: 'read' })
    const readerRefused: Row = ['DELETE', '/plants/1', { token }, 40301]
    const limited = ([method, path, options]: Row): Row => [method, path, options, 42901]

    for (const rows of [uncounted, refusals, uncounted, refusals.map(limited)]) await expectCodes(service, rows)
    await expectCodes(service, [...refusals.map(() => readerRefused), limited(readerRefused)])
  })

  test('takes requests again after the time that Retry-After says', async () => {
    await using service = await startService(transport, { rateLimit: { requests: 2, periodMs: 1000 } })
    // The requests that end a period may fall into two of them.
    let refused = await service.list('?limit=5')
    for (let made = 1; refused.status === 200 && made < 100; made++) refused = await service.list('?limit=5')

    await until('the period is over', async () => (await service.list('?limit=5')).status !== 429)

    expect([refused.status, refused.headers.get('retry-after')]).toEqual([429, '1'])
  })
})

describe.skipIf(EXECUTABLE !== undefined)('the counts of the rate limit', () => {
  const timers = () => {
    Bun.gc(true)
    return heapStats().objectTypeCounts.Timeout ?? 0
  }
  const token = (id: number): Token => ({
    id,
    userId: 1,
    userName: 'me',
    scope: 'write',
    label: undefined,
    createdAtMs: 0,
    expiresAtMs: undefined,
    revokedAtMs: undefined,
    lastUsedAtMs: undefined,
    replacedBy: undefined,
    userBlockedAtMs: undefined,
  })

  test('are one for a token, however many requests it makes', async () => {
    const count = limitRate({ requests: 3, periodMs: HOUR_MS })
    const before = timers()

    for (let made = 0; made < 1000; made++) await count(token(1)).catch(() => {})
    expect(timers() - before).toBeLessThanOrEqual(1)
    for (let id = 2; id <= 500; id++) await count(token(id))
    expect(timers() - before).toBeGreaterThanOrEqual(499)
  })
})
