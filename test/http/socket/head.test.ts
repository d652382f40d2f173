import { describe, expect, test } from 'bun:test'
import { exchange } from '../../support/raw-connection.ts'
import { type Service, SOCKET_TRANSPORTS, startService } from '../support/service.ts'

describe.each(SOCKET_TRANSPORTS)('HEAD of a list, $name', (transport) => {
  test('answers as GET, Content-Length included, without the body', async () => {
    await using service = await startService(transport)
    for (const id of [1, 2, 3]) await service.create({ id, name: `Grünlilie 🌱 ${id}` })
    const queries = ['?limit=0', '?limit=1', '?limit=3', '?limit=9', '?limit=1&after=3', '?limit=-1', '?after=x']

    for (const query of queries) {
      const get = await wire(service, 'GET', query)
      const head = await wire(service, 'HEAD', query)
      expect([query, head]).toEqual([query, { ...get, body: '' }])
      expect([query, get.headers['content-length']]).toEqual([query, String(get.body.length)])
    }
  })

  test('answers as GET without a body for a list without a limit', async () => {
    await using service = await startService(transport)
    await service.create({ id: 1, name: 'Fern' })

    for (const query of ['', '?after=0']) {
      const get = await wire(service, 'GET', query)
      const head = await wire(service, 'HEAD', query)
      expect(get.body).toContain('Fern')
      expect([query, { ...head, headers: withoutFraming(head.headers) }]).toEqual([
        query,
        { ...get, headers: withoutFraming(get.headers), body: '' },
      ])
    }
  })
})

/** An answer as it is on the wire, but for what differs with every answer. */
async function wire({ port, token }: Service, method: string, query: string) {
  const { status, headers, body } = await exchange(
    port,
    `${method} /plants${query} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nAuthorization: Bearer ${token}\r\n\r\n`,
  )
  expect([headers.has('date'), headers.has('x-request-id')]).toEqual([true, true])
  headers.delete('date')
  headers.delete('x-request-id')
  return { status, headers: Object.fromEntries(headers), body }
}

/** A short list may come whole or in chunks; neither says anything about the list. */
function withoutFraming(headers: Readonly<Record<string, unknown>>) {
  const { 'content-length': _, 'transfer-encoding': __, ...rest } = headers
  return rest
}
