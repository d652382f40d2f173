import { describe, expect, test } from 'bun:test'
import { ERRORS } from '../../src/http/answers.ts'
import { cases, expectHeaders, isErrorCode, startWithCases } from './support/cases.ts'
import { SOCKET_TRANSPORTS } from './support/transports.ts'

/** Codes that have tests of their own: transcripts, rate-limit, bug, store-damaged and store-locked.test.ts, and test/fault. */
const BROUGHT_ABOUT_ELSEWHERE = [40302, 42901, 50000, 50301, 50302, 50303]

describe.each(SOCKET_TRANSPORTS)('every answer, $name', (transport) => {
  test('has the common headers, the headers of its own kind, and no other', async () => {
    const { service, all } = await startWithCases(transport)
    await using _service = service

    await expectHeaders(service, all)
  })

  test('is the same for a client that takes gzip, unless it is an asset', async () => {
    const { service, all } = await startWithCases(transport)
    await using _service = service
    const others = all.filter(([, , path]) => !/^\/assets\/(?!nothing)/.test(path))

    expect(others).toHaveLength(all.length - 3)
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
