import { describe, expect, test } from 'bun:test'
import { ERRORS } from '../../src/http/answers.ts'
import { cases, expectHeaders, isErrorCode, startWithCases } from './support/cases.ts'
import { startService } from './support/service.ts'
import { TRANSPORTS } from './support/transports.ts'

/** Codes that have tests of their own: bug, quota, rate-limit, store-full, store-damaged and store-locked.test.ts. */
const BROUGHT_ABOUT_ELSEWHERE = [40302, 42901, 50000, 50301, 50302, 50303]

describe.each(TRANSPORTS)('every answer, $name', (transport) => {
  test('has the common headers, the headers of its own kind, and no other', async () => {
    const { service, all } = await startWithCases(transport)
    await using _service = service

    await expectHeaders(service, all)
  })

  test('is the same for a client that takes gzip, unless it is an asset', async () => {
    const { service, all } = await startWithCases(transport)
    await using _service = service
    const others = all.filter(([, , path]) => !/^\/assets\/(?!nothing)/.test(path))

    expect(others).toHaveLength(all.length - 1)
    await expectHeaders(service, others, { sent: { 'accept-encoding': 'gzip' } })
  })

  test('has the shape of Error if it is an error, and names no token', async () => {
    const { service, readToken, all } = await startWithCases(transport)
    await using _service = service

    for (const [name, method, path, options, code] of all.filter(([, , , , answer]) => isErrorCode(answer))) {
      const { status, body, text } = await service.request(method, path, options)

      const error = { error: code, message: expect.stringMatching(/^[A-Z`].+\.$/) }
      expect([name, status, body]).toEqual([name, Math.floor(code / 100), error])
      expect(text).not.toContain(service.token)
      expect(text).not.toContain(readToken)
    }
  })

  test("has the client's own X-Request-Id if it is short, plain and without plst_, even if it is the rest of a token", async () => {
    await using service = await startService(transport)

    const plain = [
      'a',
      '-',
      '.',
      '_',
      '7',
      'A.b-c_9',
      'x'.repeat(64),
      'plst',
      'plst-1',
      'pls_t',
      service.token.slice(5),
    ]

    for (const id of plain) {
      const headers = { 'x-request-id': id }

      expect((await service.list('', { headers })).headers.get('x-request-id')).toBe(id)
      expect((await service.request('GET', '/nothing', { token: null, headers })).headers.get('x-request-id')).toBe(id)
    }
  })

  test("has a fresh X-Request-Id if the client's own is empty, long, odd, given twice or like a token", async () => {
    await using service = await startService(transport)
    const { token } = service
    const refused = [
      ...['', 'x'.repeat(65), 'a b', 'a,b', 'one, two', 'a/b', 'a:b', 'a=b', '"a"', '{}', '<a>', "a'b", '%41', 'a\tb'],
      ...['\u00e9', 'plst_', 'plst_a', 'PLST_1', 'xplst_1', 'x.PlSt_1', 'x-plst_'],
      ...[token, `x${token}`, `req-${token}.1`, `x-${token.toUpperCase()}`],
    ]

    const ids = new Set<string | null>()
    for (const id of refused) {
      const { status, headers } = await service.list('', { headers: { 'x-request-id': id } })
      const own = expect.stringMatching(/^[0-9a-f-]{36}$/)
      expect([id, status, headers.get('x-request-id')]).toEqual([id, 200, own])
      ids.add(headers.get('x-request-id'))
    }
    expect(ids.size).toBe(refused.length)
    expect(service.logs()).not.toContain(token)
  })
})

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
