import { describe, expect, test } from 'bun:test'
import { type Answer, startService } from './support/service.ts'
import { TRANSPORTS } from './support/transports.ts'

// socket/plants-model.test.ts compares cached lists with a model while several users create and delete plants.
describe.each(TRANSPORTS)('a cached list, $name', (transport) => {
  test('has the body and the headers of the first answer, but a request id of its own', async () => {
    await using service = await startService(transport)
    for (const id of [1, 2, 3]) await service.create({ id, name: `Grünlilie 🌱 ${id}` })

    for (const url of ['/plants?limit=0', '/plants?limit=1', '/plants?limit=20&after=1']) {
      for (const method of ['HEAD', 'GET', 'HEAD', 'GET']) {
        const first = await service.request(method, url)
        const second = await service.request(method, url)
        expect([url, method, seen(second)]).toEqual([url, method, seen(first)])
        expect(second.headers.get('x-request-id')).not.toBe(first.headers.get('x-request-id'))
      }
      const named = await service.request('GET', url, { headers: { 'x-request-id': 'own' } })
      expect(named.headers.get('x-request-id')).toBe('own')
    }
  })

  test('goes to GET and HEAD alone: other methods on the same URL do their own work', async () => {
    await using service = await startService(transport)
    await service.create({ id: 1, name: 'Fern' })
    const json = { 'content-type': 'application/json' }
    const post = (body: string) => service.request('POST', '/plants?limit=20', { headers: json, body })

    expect((await service.list('?limit=20')).body).toEqual([{ name: 'Fern' }])
    expect(await post('{"id":2,"name":"Ivy"}')).toMatchObject({ status: 200, body: { name: 'Ivy' } })
    expect((await service.list('?limit=20')).body).toEqual([{ name: 'Fern' }, { name: 'Ivy' }])
    expect(await post('{"id":2,"name":"Ivy"}')).toMatchObject({ status: 409, body: { error: 40901 } })
    expect((await service.request('OPTIONS', '/plants?limit=20')).status).toBe(204)
    expect((await service.request('DELETE', '/plants?limit=20')).status).toBe(405)
    expect((await service.list('?limit=20')).body).toEqual([{ name: 'Fern' }, { name: 'Ivy' }])
  })

  test('belongs to its URL, also if another URL is similar', async () => {
    await using service = await startService(transport)
    for (const id of [1, 2, 3]) await service.create({ id, name: `${id}` })
    const names: readonly (readonly [query: string, names: string | number])[] = [
      ['?limit=2', '1,2'],
      ['?limit=2&', '1,2'],
      ['?limit=2&after=1', '2,3'],
      ['?after=1&limit=2', '2,3'],
      ['?limit=2&after=2', '3'],
      ['?limit=20', '1,2,3'],
      ['?limit=02', 40003],
      ['?limit=2&limit=2', 40003],
      ['?limit=%32', '1,2'],
      ['?LIMIT=2', '1,2,3'],
      ['?limit=2&x=?limit=1', '1,2'],
      ['?x=&limit=1', '1'],
      ['?limit=1&after=-1', '1'],
      ['?limit=1&after=', 40003],
    ]

    for (let round = 0; round < 3; round++) {
      for (const [query, expected] of names) {
        expect([round, query, said(await service.list(query))]).toEqual([round, query, expected])
      }
      // The same query on another path is no list.
      expect((await service.request('GET', '/plants/?limit=2')).status).toBe(404)
    }
  })
})

/** The names in a list, or the code of its error. */
const said = ({ body }: Answer): string | number =>
  Array.isArray(body) ? body.map((plant: { name: string }) => plant.name).join() : body.error

/** An answer without the headers that differ each time. */
function seen({ status, headers, text }: Answer) {
  const { 'x-request-id': _, date: __, ...rest } = Object.fromEntries(headers)
  return { status, headers: rest, text }
}
