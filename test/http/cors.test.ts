import { Database } from 'bun:sqlite'
import { describe, expect, test } from 'bun:test'
import { createApp } from '../../src/http/app.ts'
import { appOptions } from '../support/app.ts'
import { EXECUTABLE } from '../support/executable.ts'
import { STORES } from '../support/stores.ts'
import { expectHeaders, startWithCases } from './support/cases.ts'
import { createUser, failingOn, listRequest } from './support/long-lists.ts'
import { type Answer, SOCKET_TRANSPORTS, startService, TRANSPORTS } from './support/service.ts'

const ORIGIN = 'https://app.example.org'
const OTHER = 'http://localhost:5173'

const EXPOSED = 'Link, ETag, Retry-After, X-Request-Id'
const VARY = { vary: 'Origin' }

/** What a listed origin gets with every answer. */
const sharedWith = (origin: string) => ({
  ...VARY,
  'access-control-allow-origin': origin,
  'access-control-expose-headers': EXPOSED,
  'access-control-allow-methods': 'GET, HEAD, POST, DELETE',
  'access-control-allow-headers': 'Authorization, Content-Type, If-None-Match, X-Request-Id',
})

const besidesFor = (origin: string) => (method: string) => ({
  ...sharedWith(origin),
  ...(method === 'OPTIONS' && { 'access-control-max-age': '600' }),
})

/** Those headers of an answer that are about origins. */
const corsHeaders = ({ headers }: Pick<Answer, 'headers'>) =>
  Object.fromEntries([...headers].filter(([name]) => name === 'vary' || name.startsWith('access-control-')))

/** What is no listed origin, however it looks. */
const STRANGERS = [
  'https://evil.example.org',
  'http://app.example.org',
  'https://app.example.org:8443',
  'https://app.example.org/',
  'https://app.example.org.evil.example',
  'https://APP.example.org',
  'app.example.org',
  'https://sub.app.example.org',
  `${ORIGIN}, ${OTHER}`,
  `${ORIGIN}, ${ORIGIN}`,
  'null',
  '*',
  'toString',
  '__proto__',
]

describe.each(TRANSPORTS)('pages of other origins, $name', (transport) => {
  test('may read every answer where their origin is listed, errors and remembered lists included', async () => {
    const { service, all } = await startWithCases(transport, { corsOrigins: [ORIGIN, OTHER] })
    await using _service = service

    for (const origin of [ORIGIN, OTHER]) {
      await expectHeaders(service, all, { sent: { origin }, besides: besidesFor(origin) })
    }
  })

  test('get nothing where it is not, and neither do those who name none', async () => {
    const { service, all } = await startWithCases(transport, { corsOrigins: [ORIGIN, OTHER] })
    await using _service = service

    await expectHeaders(service, all, { besides: () => VARY })
    await expectHeaders(service, all, { sent: { origin: 'https://evil.example.org' }, besides: () => VARY })
    for (const origin of STRANGERS) {
      for (const method of ['GET', 'OPTIONS']) {
        const answer = await service.request(method, '/plants?limit=1', { headers: { origin } })
        expect([origin, method, corsHeaders(answer)]).toEqual([origin, method, VARY])
      }
    }
  })

  test('get nothing by default', async () => {
    const { service, all } = await startWithCases(transport)
    await using _service = service

    await expectHeaders(service, all, { sent: { origin: ORIGIN } })
  })

  test('are told what they may send, with the methods of the path, and only where there is one', async () => {
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
      ['/plants/1', 'DELETE, OPTIONS'],
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

  test('may read that a token has made too many requests, and when to go on', async () => {
    const rateLimit = { requests: 1, periodMs: 3_600_000, burst: 0 }
    await using service = await startService(transport, { corsOrigins: [ORIGIN], rateLimit })
    const headers = { origin: ORIGIN }
    await service.list('?limit=1', { headers })

    const answer = await service.list('?limit=1', { headers })

    expect([answer.status, answer.headers.has('retry-after')]).toEqual([429, true])
    expect(corsHeaders(answer)).toEqual(sharedWith(ORIGIN))
  })
})

describe.each(SOCKET_TRANSPORTS)('pages of other origins, $name', (transport) => {
  test('may read that the store is busy', async () => {
    await using service = await startService(transport, { corsOrigins: [ORIGIN] })
    using lock = new Database(service.database)
    lock.run('begin immediate')

    const answer = await service.create({ id: 1, name: 'Fern' }, { headers: { origin: ORIGIN } })
    lock.run('rollback')

    expect([answer.status, corsHeaders(answer)]).toEqual([503, sharedWith(ORIGIN)])
  })
})

/** Stores that fail are made from the source alone. */
const FAILING = EXECUTABLE === undefined ? STORES : []

describe.each(FAILING)('pages of other origins, on $name', ({ open }) => {
  test('may read of a bug', async () => {
    await using opened = await open()
    const { token } = await createUser(opened.store)
    const app = createApp(appOptions({ store: failingOn(1, opened.store).store, corsOrigins: [ORIGIN] }))
    const request = listRequest(token)
    request.headers.set('origin', ORIGIN)

    const response = await app(request)

    expect([response.status, corsHeaders(response)]).toEqual([500, sharedWith(ORIGIN)])
  })
})
