import { describe, expect, test } from 'bun:test'
import { startService, TRANSPORTS } from './support/service.ts'

describe.each(TRANSPORTS)('the ETag of a list, $name', (transport) => {
  test('is strong, and the same as long as the answer is', async () => {
    await using service = await startService(transport)
    await service.create({ id: 1, name: 'Fern' })

    const first = await service.list('?limit=5')
    const second = await service.list('?limit=5')

    expect(first.headers.get('etag')).toMatch(/^"[\x21\x23-\x7e]+"$/)
    expect(first.headers.get('cache-control')).toBe('private, no-cache')
    expect(second.headers.get('etag')).toBe(first.headers.get('etag'))
  })

  test('is another one after every change of the plants or the Link', async () => {
    await using service = await startService(transport)
    const etags: (string | null)[] = []
    const note = async () => etags.push((await service.list('?limit=2')).headers.get('etag'))

    await note()
    await service.create({ id: 1, name: 'Fern' })
    await note()
    await service.create({ id: 2, name: 'Ivy' })
    await note()
    await service.create({ id: 3, name: 'Moss' })
    await note()
    await service.delete(2)
    await note()
    await service.create({ id: 2, name: 'Ivy', tag: 'climber' })
    await note()

    expect(new Set(etags).size).toBe(6)
  })

  test('is on every capped list, and on no other', async () => {
    await using service = await startService(transport)
    await service.create({ id: 1, name: 'Fern' })

    const hasEtag = async (query: string) => (await service.list(query)).headers.has('etag')

    for (const query of ['?limit=0', '?limit=1', '?limit=5', '?limit=5&after=1']) {
      expect([query, await hasEtag(query)]).toEqual([query, true])
    }
    for (const query of ['', '?after=0', '?after=1', '?limit=-1']) {
      expect([query, await hasEtag(query)]).toEqual([query, false])
    }
  })

  test('makes an If-None-Match that names it a 304 without a body', async () => {
    await using service = await startService(transport)
    await service.create({ id: 1, name: 'Fern' })
    const etag = (await service.list('?limit=1')).headers.get('etag') ?? ''

    for (const value of namings(etag)) {
      for (const method of ['GET', 'HEAD']) {
        const answer = await service.request(method, '/plants?limit=1', { headers: { 'if-none-match': value } })
        expect([value, answer.status, answer.text]).toEqual([value, 304, ''])
        expect([value, Object.fromEntries(answer.headers)]).toEqual([
          value,
          expect.objectContaining(HEADERS_OF_304(etag)),
        ])
        expect(answer.headers.has('content-type')).toBe(false)
      }
    }
  })

  test('leaves an If-None-Match that does not name it without effect', async () => {
    await using service = await startService(transport)
    await service.create({ id: 1, name: 'Fern' })
    const etag = (await service.list('?limit=1')).headers.get('etag') ?? ''
    const bare = etag.slice(1, -1)
    const others = [
      '',
      '""',
      '"other"',
      'W/"other"',
      '"a", "b"',
      bare,
      `"${bare}`,
      `"x${bare}"`,
      `"${bare.toUpperCase()}"`,
      `w/${etag}`,
      `x${etag}`,
      `${etag}x`,
      `"a" ${etag}`,
      `"a"${etag}`,
    ]

    for (const value of others) {
      const answer = await service.list('?limit=1', { headers: { 'if-none-match': value } })
      expect([value, answer.status, answer.text]).toEqual([value, 200, '[{"name":"Fern"}]'])
    }
    await service.create({ id: 2, name: 'Ivy' })
    const changed = await service.list('?limit=1', { headers: { 'if-none-match': etag } })
    expect([changed.status, changed.text]).toEqual([200, '[{"name":"Fern"}]'])
  })

  test('has no counterpart on a list without a limit, which any If-None-Match leaves whole', async () => {
    await using service = await startService(transport)
    await service.create({ id: 1, name: 'Fern' })

    for (const value of ['*', '"x"']) {
      const answer = await service.list('', { headers: { 'if-none-match': value } })
      expect([value, answer.status, answer.text]).toEqual([value, 200, '[{"name":"Fern"}]'])
    }
  })
})

const namings = (etag: string) => [
  etag,
  `W/${etag}`,
  '*',
  ` ${etag} `,
  `"other", ${etag}`,
  `"other",${etag},"another"`,
  `W/"other" , W/${etag}`,
  `"a,b", ${etag}`,
]

const HEADERS_OF_304 = (etag: string) => ({ etag, 'cache-control': 'private, no-cache' })
