import { describe, expect, test } from 'bun:test'
import { type Answer, startService } from './support/service.ts'
import { IN_PROCESS, TRANSPORTS } from './support/transports.ts'

const URLS = ['/plants?limit=0', '/plants?limit=1', '/plants?limit=2', '/plants?limit=20&after=1']

describe.each(TRANSPORTS)('the answer with a cached list, $name', (transport) => {
  test('has the body and the headers of the first answer, but a request id of its own', async () => {
    await using service = await startService(transport)
    for (const id of [1, 2, 3]) await service.create({ id, name: `Grünlilie 🌱 ${id}` })

    for (const url of URLS) {
      for (const method of ['GET', 'HEAD', 'GET']) {
        const first = await service.request(method, url)
        const second = await service.request(method, url)
        expect([url, method, seen(second)]).toEqual([url, method, seen(first)])
        expect(second.headers.get('x-request-id')).not.toBe(first.headers.get('x-request-id'))
      }
    }
  })

  test('has the request id of its own request', async () => {
    await using service = await startService(transport)
    const ask = async (headers: Record<string, string>) =>
      (await service.list('?limit=1', { headers })).headers.get('x-request-id')

    expect(await ask({ 'x-request-id': 'first' })).toBe('first')
    expect(await ask({ 'x-request-id': 'second' })).toBe('second')
    const fresh = [await ask({}), await ask({}), await ask({ 'x-request-id': 'not a good one' })]
    expect(new Set([...fresh, 'first', 'second', 'not a good one']).size).toBe(6)
  })

  test('to HEAD has the Content-Length of GET, and changes no answer to GET', async () => {
    await using service = await startService(transport)
    await service.create({ id: 1, name: 'Grünlilie 🌱' })
    const bytes = String(Buffer.byteLength('[{"name":"Grünlilie 🌱"}]'))

    for (const methods of [
      ['HEAD', 'GET', 'HEAD'],
      ['GET', 'HEAD', 'GET'],
    ]) {
      for (const method of methods) {
        const { status, headers, text } = await service.request(method, '/plants?limit=5')
        expect([status, text]).toEqual([200, method === 'HEAD' ? '' : '[{"name":"Grünlilie 🌱"}]'])
        if (method === 'HEAD') expect(headers.get('content-length')).toBe(bytes)
      }
    }
  })

  test('is 304 if If-None-Match names its ETag, until a plant changes', async () => {
    await using service = await startService(transport)
    await service.create({ id: 1, name: 'Fern' })
    const etag = (await service.list('?limit=5')).headers.get('etag') ?? ''
    const ask = (method: string) => service.request(method, '/plants?limit=5', { headers: { 'if-none-match': etag } })

    for (const method of ['GET', 'HEAD', 'GET']) {
      const { status, text, headers } = await ask(method)
      expect([method, status, text, headers.get('etag')]).toEqual([method, 304, '', etag])
    }
    // The 304 does not change the next full answer.
    expect(await service.list('?limit=5')).toMatchObject({ status: 200, body: [{ name: 'Fern' }] })
    await service.create({ id: 2, name: 'Ivy' })
    expect(await ask('GET')).toMatchObject({ status: 200, body: [{ name: 'Fern' }, { name: 'Ivy' }] })
    await service.delete(2)
    expect((await ask('GET')).status).toBe(304)
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
    expect(await post('{}')).toMatchObject({ status: 400, body: { error: 40002 } })
    expect((await service.request('OPTIONS', '/plants?limit=20')).status).toBe(204)
    expect(await service.request('PUT', '/plants?limit=20')).toMatchObject({ status: 405, body: { error: 40501 } })
    expect(await service.request('DELETE', '/plants?limit=20')).toMatchObject({ status: 405, body: { error: 40501 } })
    expect((await service.list('?limit=20')).body).toEqual([{ name: 'Fern' }, { name: 'Ivy' }])
  })
})

describe.each(IN_PROCESS)('a cached list while the server ends, $name', (transport) => {
  test('is answered with Connection: close', async () => {
    const lifecycle = { isDraining: false }
    await using service = await startService(transport, { app: { lifecycle } })
    const ask = async () => {
      const { status, headers } = await service.list('?limit=5')
      return [status, headers.get('connection')]
    }

    const before = [await ask(), await ask()]
    lifecycle.isDraining = true
    const after = [await ask(), await ask()]

    expect(before).toEqual([
      [200, null],
      [200, null],
    ])
    expect(after).toEqual([
      [200, 'close'],
      [200, 'close'],
    ])
  })
})

/** An answer without the headers that differ each time. */
function seen({ status, headers, text }: Answer) {
  const { 'x-request-id': _, date: __, ...rest } = Object.fromEntries(headers)
  return { status, headers: rest, text }
}
