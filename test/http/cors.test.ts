import { describe, expect, test } from 'bun:test'
import { expectHeaders, startWithCases } from './support/cases.ts'
import { type Answer, startService } from './support/service.ts'
import { SOCKET_TRANSPORTS } from './support/transports.ts'

const ORIGIN = 'https://app.example.org'
const OTHER = 'http://localhost:5173'

const EXPOSED = 'Link, ETag, Retry-After, X-Request-Id'
const VARY = { vary: 'Origin' }

/** The CORS headers of every answer to a listed origin. */
const sharedWith = (origin: string) => ({
  ...VARY,
  'access-control-allow-origin': origin,
  'access-control-expose-headers': EXPOSED,
  'access-control-allow-methods': 'GET, HEAD, POST, DELETE',
  'access-control-allow-headers': 'Authorization, Content-Type, If-Match, If-None-Match, X-Request-Id',
})

const besidesFor = (origin: string) => (method: string) => ({
  ...sharedWith(origin),
  ...(method === 'OPTIONS' && { 'access-control-max-age': '600' }),
})

/** The headers of an answer that are about origins. */
const corsHeaders = ({ headers }: Pick<Answer, 'headers'>) =>
  Object.fromEntries([...headers].filter(([name]) => name === 'vary' || name.startsWith('access-control-')))

/** Values of `Origin` that only look like a listed one. */
const UNLISTED = [
  ...['https://evil.example.org', 'http://app.example.org', 'https://app.example.org:8443'],
  ...['https://app.example.org/', 'https://app.example.org.evil.example', 'https://APP.example.org'],
  ...['app.example.org', 'https://sub.app.example.org', `${ORIGIN}, ${OTHER}`, `${ORIGIN}, ${ORIGIN}`, 'null', '*'],
  ...['toString', '__proto__'],
]

describe.each(SOCKET_TRANSPORTS)('pages of other origins, $name', (transport) => {
  test('may read every answer if their origin is listed, errors and cached lists included', async () => {
    const { service, all } = await startWithCases(transport, { corsOrigins: [ORIGIN, OTHER] })
    await using _service = service

    for (const origin of [ORIGIN, OTHER]) {
      await expectHeaders(service, all, { sent: { origin }, besides: besidesFor(origin) })
    }
  })

  test('are sent no CORS headers if their origin is not listed or not named', async () => {
    const { service, all } = await startWithCases(transport, { corsOrigins: [ORIGIN, OTHER] })
    await using _service = service

    await expectHeaders(service, all, { besides: () => VARY })
    await expectHeaders(service, all, { sent: { origin: 'https://evil.example.org' }, besides: () => VARY })
    for (const origin of UNLISTED) {
      for (const method of ['GET', 'OPTIONS']) {
        const answer = await service.request(method, '/plants?limit=1', { headers: { origin } })
        expect([origin, method, corsHeaders(answer)]).toEqual([origin, method, VARY])
      }
    }
  })

  test('are sent no CORS headers by default', async () => {
    const { service, all } = await startWithCases(transport)
    await using _service = service

    await expectHeaders(service, all, { sent: { origin: ORIGIN } })
  })

  test('are told in a preflight what they may send, with the methods of the path, if the path is known', async () => {
    await using service = await startService(transport, { corsOrigins: [ORIGIN] })
    const ask = (path: string, method: string) =>
      service.request('OPTIONS', path, {
        token: null,
        headers: {
          origin: ORIGIN,
          'access-control-request-method': method,
          'access-control-request-headers': 'authorization,content-type,if-none-match,x-request-id',
        },
      })

    for (const [path, allow] of [
      ['/plants', 'GET, HEAD, POST, OPTIONS'],
      ['/plants/1', 'GET, HEAD, DELETE, OPTIONS'],
      ['/healthz', 'GET, HEAD, OPTIONS'],
    ] as const) {
      for (const method of ['GET', 'HEAD', 'POST', 'DELETE']) {
        const answer = await ask(path, method)
        expect([path, answer.status, answer.text, answer.headers.get('allow')]).toEqual([path, 204, '', allow])
        expect(corsHeaders(answer)).toEqual({ ...sharedWith(ORIGIN), 'access-control-max-age': '600' })
      }
    }
    const unknown = await ask('/nothing', 'GET')
    expect([unknown.status, unknown.body.error, unknown.headers.get('allow')]).toEqual([404, 40401, null])
  })
})
