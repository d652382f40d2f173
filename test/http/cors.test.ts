import { describe, test } from 'bun:test'
import { expectHeaders, startWithCases } from './support/cases.ts'
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
  })

  test('are sent no CORS headers by default', async () => {
    const { service, all } = await startWithCases(transport)
    await using _service = service

    await expectHeaders(service, all, { sent: { origin: ORIGIN } })
  })
})
