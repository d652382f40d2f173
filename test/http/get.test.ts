import { describe, expect, test } from 'bun:test'
import { INT64_MAX, INT64_MIN } from '../../src/domain/int64.ts'
import { ENCODED_IDS, REFUSED_IDS } from './support/plant-paths.ts'
import { bytesOf, type Service, startService } from './support/service.ts'
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

  test('is exact at every digit of the id', async () => {
    await using service = await startService(transport)
    const ids = [INT64_MIN, -9007199254740993n, -1n, 0n, 9007199254740992n, 9007199254740993n, INT64_MAX]
    for (const id of ids) await service.create(`{"id":${id},"name":"${id}"}`)

    expect(
      await textsOf(
        service,
        ids.map((id) => `${id}?include=id`),
      ),
    ).toEqual(ids.map((id) => `{"id":${id},"name":"${id}"}`))
  })

  test('is answered to HEAD with the same headers and no body', async () => {
    await using service = await startService(transport)
    await service.create({ id: 1, name: 'Fern' })

    for (const path of ['/plants/1', '/plants/1?include=id', '/plants/2', '/plants/x']) {
      const [get, head] = [await service.request('GET', path), await service.request('HEAD', path)]
      expect([path, head.status, head.text]).toEqual([path, get.status, ''])
      for (const name of ['content-type', 'etag', 'cache-control', 'x-content-type-options'])
        expect([path, name, head.headers.get(name)]).toEqual([path, name, get.headers.get(name)])
      expect([path, head.headers.get('content-length')]).toEqual([path, String(Buffer.byteLength(get.text))])
    }
  })

  test('is answered with 304 to HEAD as to GET if If-None-Match names it, without a length', async () => {
    await using service = await startService(transport)
    await service.create({ id: 1, name: 'Fern' })

    for (const method of ['GET', 'HEAD']) {
      const { status, text, headers } = await service.request(method, '/plants/1', {
        headers: { 'if-none-match': '*' },
      })
      expect([method, status, text, headers.get('content-length')]).toEqual([method, 304, '', null])
    }
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
        expect([headers.get('etag'), headers.get('cache-control')]).toEqual([etag, 'private, no-cache'])
      }
    }
    for (const value of ['"other"', '', etag.slice(1, -1)]) {
      const { status, text } = await service.get(1, { headers: { 'if-none-match': value } })
      expect([value, status, text]).toEqual([value, 200, '{"name":"Fern"}'])
    }
    expect((await service.get(2, { headers: { 'if-none-match': '*' } })).status).toBe(404)
  })

  test("refuses a plant that is absent, was deleted or is another user's, with the same bytes", async () => {
    await using service = await startService(transport)
    const { text: token } = await service.createToken({ user: 'you' })
    await service.create({ id: 1, name: 'Fern' })
    await service.create({ id: 2, name: 'Ivy' }, { token })
    await service.delete(1)

    const absent = await service.get(7)

    expect(absent).toMatchObject({ status: 404, body: { error: 40402 } })
    for (const path of [1, 2, `2?include=id`, INT64_MAX])
      expect([path, bytesOf(await service.get(path))]).toEqual([path, bytesOf(absent)])
  })

  test('decodes percent-encodings in the id once', async () => {
    await using service = await startService(transport)
    for (const id of new Set(Object.values(ENCODED_IDS))) await service.create({ id, name: String(id) })

    for (const [encoded, id] of Object.entries(ENCODED_IDS))
      expect([encoded, (await service.get(encoded)).body]).toEqual([encoded, { name: String(id) }])
  })

  test('refuses a wrong id and a wrong include', async () => {
    await using service = await startService(transport)
    for (const id of [0, 1, -1, 10]) await service.create({ id, name: String(id) })

    for (const id of REFUSED_IDS) {
      const { status, body } = await service.get(id)
      const refusal = { error: 40004, message: expect.stringMatching(/\w/) }
      expect({ id, status, body }).toEqual({ id, status: 400, body: refusal })
    }
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

  test('takes a read token, and refuses strangers', async () => {
    await using service = await startService(transport)
    const { text: token } = await service.createToken({ scope: 'read' })
    await service.create({ id: 1, name: 'Fern' })

    expect((await service.get(1, { token })).status).toBe(200)
    expect((await service.get(1, { token: null })).body.error).toBe(40101)
    expect((await service.get('x', { token: 'plst_wrong' })).body.error).toBe(40102)
  })

  test('shows a create or delete that was answered before', async () => {
    await using service = await startService(transport)
    for (let round = 0; round < 20; round++) {
      await service.create({ id: 1, name: String(round) })
      expect((await service.get(1)).body).toEqual({ name: String(round) })
      await service.delete(1)
      expect((await service.get(1)).status).toBe(404)
    }
  })

  test('is where the message of 40901 leads to', async () => {
    await using service = await startService(transport)
    await service.create({ id: 42, name: 'Fern' })

    const { body } = await service.create({ id: 42, name: 'Ivy' })

    expect(body.error).toBe(40901)
    expect(body.message).toContain('GET /plants/{id}')
    expect(body.message).not.toMatch(/delete/i)
    expect((await service.get(42)).body).toEqual({ name: 'Fern' })
  })
})

const textsOf = (service: Service, paths: readonly string[]) =>
  Promise.all(paths.map(async (path) => (await service.get(path)).text))

const etagOf = async (service: Service, path: string) => (await service.get(path)).headers.get('etag')
