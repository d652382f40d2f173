import { describe, expect, test } from 'bun:test'
import { type Service, startService } from './support/service.ts'
import { TRANSPORTS } from './support/transports.ts'

describe.each(TRANSPORTS)('GET /plants/{id}, $name', (transport) => {
  test('answers the plant, with its id only if the query asks for it', async () => {
    await using service = await startService(transport)
    await service.create({ id: 1, name: 'Fern', tag: 'indoor' })
    await service.create({ id: 2, name: '' })

    const texts = await textsOf(service, ['1', '2', '1?include=id', '2?include=id', '1?x=1&include=id'])

    expect(texts).toEqual([
      '{"name":"Fern","tag":"indoor"}',
      '{"name":""}',
      '{"id":1,"name":"Fern","tag":"indoor"}',
      '{"id":2,"name":""}',
      '{"id":1,"name":"Fern","tag":"indoor"}',
    ])
  })

  test('has a strong ETag that depends on name and tag alone', async () => {
    await using service = await startService(transport)
    const { text: token } = await service.createToken({ user: 'you' })
    await service.create({ id: 1, name: 'Fern', tag: 'indoor' })
    await service.create({ id: 2, name: 'Fern', tag: 'indoor' })
    await service.create({ id: 1, name: 'Fern', tag: 'indoor' }, { token })
    const others = [{ name: 'Fern' }, { name: 'Fern', tag: '' }, { name: 'Fern","tag":"indoor' }, { name: 'indoor' }]
    for (const [index, plant] of others.entries()) await service.create({ id: index + 10, ...plant })

    const etags = await Promise.all(['1', '2', '1?include=id'].map((path) => etagOf(service, path)))
    etags.push((await service.get(1, { token })).headers.get('etag'))
    const different = await Promise.all(others.map((_, index) => etagOf(service, String(index + 10))))

    expect(etags[0]).toMatch(/^"[\x21\x23-\x7e]+"$/)
    expect(new Set(etags).size).toBe(1)
    expect(new Set([...different, etags[0]]).size).toBe(others.length + 1)
    expect((await service.get(1)).headers.get('cache-control')).toBe('private, no-cache')
  })

  test('is 304 without a body if If-None-Match names the ETag, and the plant otherwise', async () => {
    await using service = await startService(transport)
    await service.create({ id: 1, name: 'Fern' })
    const etag = (await etagOf(service, '1')) ?? ''

    for (const method of ['GET', 'HEAD']) {
      for (const value of [etag, `W/${etag}`, '*', `"other", ${etag}`]) {
        const answer = await service.request(method, '/plants/1', { headers: { 'if-none-match': value } })
        const { status, text, headers } = answer
        expect([value, status, text, headers.get('content-type')]).toEqual([value, 304, '', null])
        expect(headers.get('content-length')).toBeNull()
        expect([headers.get('etag'), headers.get('cache-control')]).toEqual([etag, 'private, no-cache'])
      }
    }
    for (const value of ['"other"', '', etag.slice(1, -1)]) {
      const { status, text } = await service.get(1, { headers: { 'if-none-match': value } })
      expect([value, status, text]).toEqual([value, 200, '{"name":"Fern"}'])
    }
    expect((await service.get(2, { headers: { 'if-none-match': '*' } })).status).toBe(404)
  })

  test('refuses a wrong include', async () => {
    await using service = await startService(transport)
    await service.create({ id: 1, name: 'Fern' })

    for (const include of ['', 'ID', 'name', 'id,id', 'id&include=id', 'id&include=x'])
      expect([include, (await service.get(`1?include=${include}`)).body.error]).toEqual([include, 40003])
  })

  test('ignores other query parameters, and If-Match', async () => {
    await using service = await startService(transport)
    for (const id of [1, 2]) await service.create({ id, name: String(id) })

    const unmatched = await service.get(1, { headers: { 'if-match': '"x"' } })
    expect([unmatched.status, unmatched.text]).toEqual([200, '{"name":"1"}'])
    for (const query of ['?id=2', '?limit=x&after=x', '?x=1&x=2', '?Include=x', '?%'])
      expect([query, (await service.get(`1${query}`)).text]).toEqual([query, '{"name":"1"}'])
  })
})

const textsOf = (service: Service, paths: readonly string[]) =>
  Promise.all(paths.map(async (path) => (await service.get(path)).text))

const etagOf = async (service: Service, path: string) => (await service.get(path)).headers.get('etag')
