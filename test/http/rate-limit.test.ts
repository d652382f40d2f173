import { describe, expect, test } from 'bun:test'
import { until } from '../support/until.ts'
import { ANSWERED_BEFORE_TOKENS, expectCodes, REFUSED_BY_THEMSELVES, type Row } from './support/answers.ts'
import { startService } from './support/service.ts'
import { SOCKET_TRANSPORTS } from './support/transports.ts'

const HOUR_MS = 3_600_000
/** A limit whose period does not end while a test runs. */
const perHour = (requests: number) => ({ requests, periodMs: HOUR_MS })

describe.each(SOCKET_TRANSPORTS)('the rate limit of a token, $name', (transport) => {
  test('counts what a later check refuses, and is checked before it; what is answered without a token does not count', async () => {
    const refusals: Row[] = [
      ...REFUSED_BY_THEMSELVES,
      ['GET', '/plants/7', {}, 40402],
      ['DELETE', '/plants/7', {}, 40402],
    ]
    const uncounted: Row[] = [...ANSWERED_BEFORE_TOKENS, ['GET', '/readyz', {}, 200]]
    await using service = await startService(transport, { rateLimit: perHour(refusals.length), maxBody: 100 })
    const { text: token } = await service.createToken({ scope: 'read' })
    const readerRefused: Row = ['DELETE', '/plants/1', { token }, 40301]
    const limited = ([method, path, options]: Row): Row => [method, path, options, 42901]

    for (const rows of [uncounted, refusals, uncounted, refusals.map(limited)]) await expectCodes(service, rows)
    await expectCodes(service, [...refusals.map(() => readerRefused), limited(readerRefused)])
  })

  test('never names a time in Retry-After at which the limit still holds', async () => {
    await using service = await startService(transport, { rateLimit: perHour(1) })
    const startMs = Date.now()
    await service.list('?limit=5')

    const refused = await service.list('?limit=5')

    const endMs = Date.now() + Number(refused.headers.get('retry-after')) * 1000
    expect(endMs).toBeGreaterThanOrEqual(startMs + HOUR_MS)
  })

  test('takes requests again after the time that Retry-After says', async () => {
    await using service = await startService(transport, { rateLimit: { requests: 2, periodMs: 1000 } })
    // The requests that end a period may fall into two of them.
    let refused = await service.list('?limit=5')
    for (let made = 1; refused.status === 200 && made < 100; made++) refused = await service.list('?limit=5')

    await until('the period is over', async (see) => see(await service.list('?limit=5')).status !== 429)

    expect([refused.status, refused.headers.get('retry-after')]).toEqual([429, '1'])
  })
})
