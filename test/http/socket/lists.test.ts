import { describe, expect, test } from 'bun:test'
import { LIST_MAX_BYTES } from '../../../src/http/lists/render-list.ts'
import { createMany } from '../support/long-lists.ts'
import { type Service, startService } from '../support/service.ts'
import { SOCKET_TRANSPORTS } from '../support/transports.ts'

const LAST_CHUNK = '\r\n0\r\n\r\n'

describe.each(SOCKET_TRANSPORTS)('a list on a connection of its own, $name', (transport) => {
  test('shows what was created and deleted before, on whichever connection', async () => {
    await using service = await startService(transport)
    const listAnew = async (query: string) => JSON.parse((await service.exchange('GET', `/plants${query}`)).body)

    for (let id = 1; id <= 20; id++) {
      await service.create({ id, name: `Plant ${id}` })
      for (const query of ['', '?limit=5']) expect(await listAnew(query)).toEqual([{ name: `Plant ${id}` }])
      await service.delete(id)
      for (const query of ['', '?limit=5']) expect(await listAnew(query)).toEqual([])
    }
  })

  test('is sent in chunks without Content-Length and ETag if it has no limit', async () => {
    await using service = await startService(transport)
    await createMany(service.store)

    const { status, headers, body, isClosed } = await service.exchange('GET', '/plants')

    expect([status, isClosed, body.slice(-LAST_CHUNK.length - 1)]).toEqual([200, true, `]${LAST_CHUNK}`])
    const { date: _, 'x-request-id': __, connection: ___, ...rest } = Object.fromEntries(headers)
    expect(rest).toEqual({
      'cache-control': 'no-store',
      'content-type': 'application/json',
      'transfer-encoding': 'chunked',
      'x-content-type-options': 'nosniff',
    })
  })

  test('has the same head for HEAD, Content-Length included, if it is capped or refused, as a plant has', async () => {
    await using service = await startService(transport)
    for (const id of [1, 2, 3]) await service.create({ id, name: `Grünlilie 🌱 ${id}` })
    await service.store.createPlant(await service.userIdOf('me'), { id: 4n, name: 'x'.repeat(LIST_MAX_BYTES) })
    const queries = ['?limit=0', '?limit=1', '?limit=3', '?limit=9', '?limit=1&after=3', '?limit=-1', '?after=x']

    for (const query of [...queries, '/1', '/1?include=id', '/7', '/x']) {
      const get = await answer(service, 'GET', query)
      expect([query, await answer(service, 'HEAD', query)]).toEqual([query, { ...get, body: '' }])
      expect([query, get.headers['content-length']]).toEqual([query, String(get.body.length)])
    }
  })

  test('has the same head for HEAD but its length if it has no limit', async () => {
    await using service = await startService(transport)
    await service.create({ id: 1, name: 'Fern' })

    for (const query of ['', '?after=0']) {
      const get = await answer(service, 'GET', query)
      const head = await answer(service, 'HEAD', query)
      expect(get.body).toContain('Fern')
      expect([query, { ...head, headers: withoutFraming(head.headers) }]).toEqual([
        query,
        { ...get, headers: withoutFraming(get.headers), body: '' },
      ])
    }
  })
})

test.each(SOCKET_TRANSPORTS)('a successful delete has no body and no headers of one, $name', async (transport) => {
  await using service = await startService(transport)
  await service.create({ id: 1, name: 'Fern' })

  const { status, headers, body } = await service.exchange('DELETE', '/plants/1')

  expect([status, body]).toEqual([204, ''])
  expect([...headers.keys()].toSorted()).toEqual(['cache-control', 'date', 'x-content-type-options', 'x-request-id'])
})

/** An answer without the headers that differ each time. */
async function answer(service: Service, method: string, query: string) {
  const { status, headers, body } = await service.exchange(method, `/plants${query}`)
  const { date, 'x-request-id': id, ...rest } = Object.fromEntries(headers)
  expect([typeof date, typeof id]).toEqual(['string', 'string'])
  return { status, headers: rest as Readonly<Record<string, string>>, body }
}

/** A short list may come whole or in chunks; neither says anything about the list. */
function withoutFraming(headers: Readonly<Record<string, string>>) {
  const { 'content-length': _, 'transfer-encoding': __, ...rest } = headers
  return rest
}
