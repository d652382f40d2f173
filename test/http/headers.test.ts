import { describe, expect, test } from 'bun:test'
import { ERRORS } from '../../src/http/answers.ts'
import { cases, expectHeaders, isErrorCode, startWithCases } from './support/cases.ts'
import { SOCKET_TRANSPORTS } from './support/transports.ts'

/** Codes that have tests of their own: transcripts, rate-limit, bug, store-damaged and store-locked.test.ts, and test/fault. */
const BROUGHT_ABOUT_ELSEWHERE = [40302, 42901, 50000, 50301, 50302, 50303]

describe.each(SOCKET_TRANSPORTS)('every answer, $name', (transport) => {
  test('has the common headers, the headers of its own kind, no other, and the shape of Error if it is one', async () => {
    const { service, all } = await startWithCases(transport)
    await using _service = service

    await expectHeaders(service, all)
  })

  // CORS is off by default.
  test('is the same for a client that takes gzip or for a page of another origin, unless it is an asset', async () => {
    const { service, all } = await startWithCases(transport)
    await using _service = service
    const others = all.filter(([, , path]) => !/^\/assets\/(?!nothing)/.test(path))

    expect(others).toHaveLength(all.length - 3)
    await expectHeaders(service, others, { sent: { 'accept-encoding': 'gzip', origin: 'https://app.example.org' } })
  })
})

/** The CORS headers of every answer to a listed origin. */
const sharedWith = (origin: string) => (method: string) => ({
  vary: 'Origin',
  'access-control-allow-origin': origin,
  'access-control-expose-headers': 'Link, ETag, Retry-After, X-Request-Id',
  'access-control-allow-methods': 'GET, HEAD, POST, PUT, DELETE',
  'access-control-allow-headers': 'Authorization, Content-Type, If-Match, If-None-Match, X-Request-Id',
  ...(method === 'OPTIONS' && { 'access-control-max-age': '600' }),
})

test.each(SOCKET_TRANSPORTS)(
  'pages of listed origins may read every answer, errors and cached lists included, and others none, $name',
  async (transport) => {
    const corsOrigin = ['https://app.example.org', 'http://localhost:5173']
    const { service, all } = await startWithCases(transport, { corsOrigin })
    await using _service = service

    for (const origin of corsOrigin)
      await expectHeaders(service, all, { sent: { origin }, besides: sharedWith(origin) })
    for (const sent of [{}, { origin: 'https://evil.example.org' }])
      await expectHeaders(service, all, { sent, besides: () => ({ vary: 'Origin' }) })
  },
)

test('every error code has a test, here or in a file of its own', () => {
  const here = cases('', '', '')
    .map(([, , , , answer]) => answer)
    .filter(isErrorCode)

  expect([...new Set([...here, ...BROUGHT_ABOUT_ELSEWHERE])].sort()).toEqual(
    Object.values(ERRORS)
      .map(({ code }) => code)
      .sort(),
  )
})
