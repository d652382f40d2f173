import { describe, expect, test } from 'bun:test'
import { ERRORS } from '../../src/http/errors.ts'
import { makeCertificate, OPENSSL } from '../support/certificates.ts'
import { makeFolder } from '../support/folder.ts'
import { lacks } from '../support/requirement.ts'
import { cases, expectHeaders, startWithCases } from './support/cases.ts'
import { SOCKET_TRANSPORTS, startService, TRANSPORTS } from './support/service.ts'

/** Those of the server's own making have suites of their own: bug.test.ts, store-faults.test.ts and rate-limit.test.ts. */
const BROUGHT_ABOUT_ELSEWHERE = [42901, 50000, 50301, 50302, 50303]

describe.each(TRANSPORTS)('every answer, $name', (transport) => {
  test('has the common headers, those that belong to it, and no other', async () => {
    const { service, all } = await startWithCases(transport)
    await using _service = service

    await expectHeaders(service, all)
  })

  test('has, where it is an error, the one shape of errors', async () => {
    const { service, readToken, all } = await startWithCases(transport)
    await using _service = service

    for (const [name, { send, status, error }] of all) {
      if (error === undefined) continue
      const answer = await service.request(...send)

      expect({ name, ...answer.body }).toEqual({ name, error, message: expect.stringMatching(/^[A-Z`].+\.$/) })
      expect([name, Math.floor(answer.body.error / 100)]).toEqual([name, status])
      expect(answer.text).not.toContain(service.token)
      expect(answer.text).not.toContain(readToken)
    }
  })

  test('names the request: a fresh id each time', async () => {
    await using service = await startService(transport)
    const ids = new Set<string | null>()

    for (const path of ['/plants', '/nothing', '/healthz', '/plants', '/nothing', '/healthz']) {
      ids.add((await service.request('GET', path)).headers.get('x-request-id'))
    }

    expect(ids.size).toBe(6)
    for (const id of ids) expect(id).toMatch(/^[A-Za-z0-9._-]{16,64}$/)
  })

  test("takes the client's own request id where it is harmless", async () => {
    await using service = await startService(transport)

    for (const id of ['a', '-', '.', '_', '7', 'A.b-c_9', 'x'.repeat(64), 'plst', 'plst-1', 'pls_t']) {
      const headers = { 'x-request-id': id }

      expect((await service.list('', { headers })).headers.get('x-request-id')).toBe(id)
      expect((await service.request('GET', '/nothing', { token: null, headers })).headers.get('x-request-id')).toBe(id)
    }
  })

  test("refuses the client's own request id where it is not", async () => {
    await using service = await startService(transport)
    const refused = [
      '',
      'x'.repeat(65),
      'a b',
      'a,b',
      'a/b',
      'a:b',
      'a=b',
      '"a"',
      '{}',
      '<a>',
      "a'b",
      '%41',
      '\u00e9',
      'a\tb',
      'plst_',
      'plst_a',
      'PLST_1',
      'xplst_1',
      'x.PlSt_1',
      'x-plst_',
      service.token,
      `x${service.token}`,
      `req-${service.token}.1`,
      `x-${service.token.toUpperCase()}`,
    ]

    for (const id of refused) {
      const answer = await service.list('', { headers: { 'x-request-id': id } })

      expect({ id, status: answer.status, own: answer.headers.get('x-request-id') }).toEqual({
        id,
        status: 200,
        own: expect.stringMatching(/^[0-9a-f-]{36}$/),
      })
    }
    expect(service.logs()).not.toContain(service.token)
  })

  test('gives back a request id that is given twice to nobody', async () => {
    await using service = await startService(transport)

    const { headers } = await service.list('', { headers: { 'x-request-id': 'one, two' } })

    expect(headers.get('x-request-id')).toMatch(/^[0-9a-f-]{36}$/)
  })
})

describe.skipIf(lacks(OPENSSL)).each(SOCKET_TRANSPORTS)('every answer with TLS, $name', (transport) => {
  test('has the same headers, and tells browsers to come back by TLS alone', async () => {
    using folder = makeFolder()
    const { service, all } = await startWithCases(transport, { tls: await makeCertificate(folder.path, 'own') })
    await using _service = service

    await expectHeaders(service, all, { besides: () => ({ 'strict-transport-security': 'max-age=31536000' }) })
  })
})

test('every error code is brought about, here or in the suites of faults', () => {
  const here = Object.values(cases('', '')).flatMap(({ error }) => error ?? [])

  expect([...new Set([...here, ...BROUGHT_ABOUT_ELSEWHERE])].sort()).toEqual(
    Object.values(ERRORS)
      .map(({ code }) => code)
      .sort(),
  )
})
