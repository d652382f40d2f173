import { describe, expect, test } from 'bun:test'
import { startService } from './support/service.ts'
import { TRANSPORTS } from './support/transports.ts'

describe.each(TRANSPORTS)('the ETag of a list, $name', (transport) => {
  test('changes with every change of the plants or the Link', async () => {
    await using service = await startService(transport)
    const changes = [
      () => service.create({ id: 1, name: 'Fern' }),
      () => service.create({ id: 2, name: 'Ivy' }),
      // Changes the Link alone.
      () => service.create({ id: 3, name: 'Moss' }),
      () => service.delete(2),
      () => service.create({ id: 2, name: 'Ivy', tag: 'climber' }),
    ]

    const etags = [(await service.list('?limit=2')).headers.get('etag')]
    for (const change of changes) {
      await change()
      etags.push((await service.list('?limit=2')).headers.get('etag'))
    }

    expect(new Set(etags).size).toBe(6)
    for (const etag of etags) expect(etag).toMatch(/^"[\x21\x23-\x7e]+"$/)
  })

  test('is sent with every capped list, and with no other', async () => {
    await using service = await startService(transport)
    await service.create({ id: 1, name: 'Fern' })

    const hasEtag = async (query: string) => (await service.list(query)).headers.has('etag')

    for (const query of ['?limit=0', '?limit=1', '?limit=5', '?limit=5&after=1']) {
      expect([query, await hasEtag(query)]).toEqual([query, true])
    }
    for (const query of ['', '?after=0', '?after=1', '?limit=-1']) {
      expect([query, await hasEtag(query)]).toEqual([query, false])
    }
    // So no If-None-Match is compared.
    for (const value of ['*', '"x"']) {
      const answer = await service.list('', { headers: { 'if-none-match': value } })
      expect([value, answer.status, answer.text]).toEqual([value, 200, '[{"name":"Fern"}]'])
    }
  })

  test('is answered with 304 and no body if If-None-Match names it', async () => {
    await using service = await startService(transport)
    await service.create({ id: 1, name: 'Fern' })
    const etag = (await service.list('?limit=1')).headers.get('etag') ?? ''

    const values = [etag, `W/${etag}`, '*', ` ${etag} `, `"other", ${etag}`, `"other",${etag},"another"`]
    for (const value of [...values, `W/"other" , W/${etag}`, `"a,b", ${etag}`]) {
      for (const method of ['GET', 'HEAD']) {
        const answer = await service.request(method, '/plants?limit=1', { headers: { 'if-none-match': value } })
        expect([value, answer.status, answer.text, answer.headers.get('content-type')]).toEqual([value, 304, '', null])
        expect([answer.headers.get('etag'), answer.headers.get('cache-control')]).toEqual([etag, 'private, no-cache'])
      }
    }
  })

  test('is sent with the whole list if If-None-Match names another one', async () => {
    await using service = await startService(transport)
    await service.create({ id: 1, name: 'Fern' })
    const etag = (await service.list('?limit=1')).headers.get('etag') ?? ''
    const bare = etag.slice(1, -1)
    const others = [
      ...['', '""', '"other"', 'W/"other"', '"a", "b"', bare, `"${bare}`, `"x${bare}"`, `"${bare.toUpperCase()}"`],
      ...[`w/${etag}`, `x${etag}`, `${etag}x`, `"a" ${etag}`, `"a"${etag}`],
    ]

    for (const value of others) {
      const answer = await service.list('?limit=1', { headers: { 'if-none-match': value } })
      expect([value, answer.status, answer.text]).toEqual([value, 200, '[{"name":"Fern"}]'])
    }
    await service.create({ id: 2, name: 'Ivy' })
    const changed = await service.list('?limit=1', { headers: { 'if-none-match': etag } })
    expect([changed.status, changed.text]).toEqual([200, '[{"name":"Fern"}]'])
  })
})
