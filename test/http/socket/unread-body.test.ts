import { describe, expect, test } from 'bun:test'
import { exchange } from '../../support/raw-connection.ts'
import { rawRequest } from '../support/raw-request.ts'
import { startService } from '../support/service.ts'
import { SOCKET_TRANSPORTS } from '../support/transports.ts'

const MAX_BODY_BYTES = 200
const JSON_TYPE = 'Content-Type: application/json'

/** A request whose head alone is refused, and the code of the refusal. */
type Refused = readonly [code: number, method: string, path: string, token: string | null, ...lines: readonly string[]]

const refusedHeads = (token: string, readToken: string): readonly Refused[] => [
  [40101, 'POST', '/plants', null, JSON_TYPE],
  [40102, 'POST', '/plants', 'nobody', JSON_TYPE],
  [40401, 'POST', '/nothing', token],
  [40501, 'PUT', '/plants', token],
  [40301, 'POST', '/plants', readToken],
  [41501, 'POST', '/plants', token],
  [41502, 'POST', '/plants', token, JSON_TYPE, 'Content-Encoding: gzip'],
  [41301, 'POST', '/plants', token, JSON_TYPE, `Content-Length: ${MAX_BODY_BYTES + 1}`],
  [41301, 'POST', '/plants', token, JSON_TYPE, `Content-Length: ${2 ** 40}`],
]

describe.each(SOCKET_TRANSPORTS)('a body that never comes, $name', (transport) => {
  test('is not waited for if the head alone is refused', async () => {
    await using service = await startService(transport, { maxBodyBytes: MAX_BODY_BYTES })
    const { text: readToken } = await service.createToken({ scope: 'read' })

    for (const [code, method, path, token, ...lines] of refusedHeads(service.token, readToken)) {
      const lengths = code === 41301 ? [''] : ['Content-Length: 20', 'Transfer-Encoding: chunked']
      for (const length of lengths) {
        const announced = length === '' ? lines : [...lines, length]
        const request = rawRequest(method, path, { token, closes: false, lines: announced })
        const { status, body } = await exchange(service.port, request)
        const seen = { lines: announced, status, error: JSON.parse(body).error }
        expect(seen).toEqual({ lines: announced, status: Math.floor(code / 100), error: code })
      }
    }
  })

  test('is not waited for on GET and DELETE, which ignore a body', async () => {
    await using service = await startService(transport)
    const bodies = [
      ['Content-Length: 9', '{"limit":'],
      ['Content-Length: 70000', ''],
      ['Transfer-Encoding: chunked', ''],
    ]

    for (const [line = '', body = ''] of bodies) {
      await service.create({ id: 1, name: 'Fern' })
      const listed = await service.exchange('GET', '/plants?limit=5', { lines: [line], body })
      expect([line, listed.status, listed.body]).toEqual([line, 200, '[{"name":"Fern"}]'])
      const deleted = await service.exchange('DELETE', '/plants/1', { lines: [line], body })
      expect([line, deleted.status]).toEqual([line, 204])
    }
  })

  test('is waited for if nothing is refused', async () => {
    await using service = await startService(transport, { maxBodyBytes: MAX_BODY_BYTES })
    const lines = [JSON_TYPE, 'Expect: 100-continue', `Content-Length: ${MAX_BODY_BYTES}`]
    const head = rawRequest('POST', '/plants', { token: service.token, lines })

    const { text } = await exchange(service.port, head, { onFirst: '{"id":1,"name":"Fern"}'.padEnd(MAX_BODY_BYTES) })

    expect(text).toMatch(/^HTTP\/1\.1 100 Continue\r\n\r\nHTTP\/1\.1 200 OK\r\n.*\r\n\r\n\{"name":"Fern"\}$/s)
  })
})
