import { describe, expect, test } from 'bun:test'
import { PAGE_PLANTS } from '../../src/http/lists/render-list.ts'
import { createMany, MANY, namesIn, nextOf } from './support/long-lists.ts'
import { type Answer, type Service, startService } from './support/service.ts'
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
  })

  test.each([
    ['', { 'if-none-match': '*' }],
    ['', { 'if-none-match': '"x"' }],
    ['', { 'if-match': '"x"' }],
    ['?limit=5', { 'if-match': '"x"' }],
  ] as const)('is not compared for the query "%s" with %j', async (query, headers) => {
    await using service = await startService(transport)
    await service.create({ id: 1, name: 'Fern' })

    const { status, text } = await service.list(query, { headers })

    expect([status, text]).toEqual([200, '[{"name":"Fern"}]'])
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
      ...[`w/${etag}`, `x${etag}`, `${etag}x`, `"a" ${etag}`, `"a"${etag}`, `"x,"${etag}`, `${etag}, a`, `*, ${etag}`],
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

describe.each(TRANSPORTS)('the Link of a list, $name', (transport) => {
  test('leads to the plants that follow, as a relative reference, and is absent if none follows', async () => {
    await using service = await startService(transport)
    for (const id of [-5, 0, 7]) await service.create({ id, name: `Plant ${id}` })

    expect(await links(service, ['?limit=1', '?limit=2', '?limit=1&after=-5', '?x=1&limit=2&y=2'])).toEqual([
      '<?limit=1&after=-5>; rel="next"',
      '<?limit=2&after=0>; rel="next"',
      '<?limit=1&after=0>; rel="next"',
      '<?limit=2&after=0>; rel="next"',
    ])
    const queries = ['?limit=3', '?limit=4', '?limit=2&after=-5', '?limit=1&after=7', '?limit=0', '?limit=0&after=-5']
    expect(await links(service, [...queries, '', '?after=-5'])).toEqual(Array(8).fill(null))
  })

  test('leads through every plant once, whatever the limit', async () => {
    await using service = await startService(transport)
    const names = await createMany(service.store)
    const limits = [PAGE_PLANTS - 1, PAGE_PLANTS, PAGE_PLANTS + 1, MANY - 1, MANY, MANY + 1, 100, 7]

    for (const limit of limits) {
      const pages = await follow(service, `?limit=${limit}`)
      expect([limit, pages.flat()]).toEqual([limit, names])
      expect([limit, pages.length]).toEqual([limit, Math.ceil(MANY / limit)])
    }
  })

  test('caps every list at --list-max', async () => {
    await using service = await startService(transport, { listMax: 2 })
    for (const id of [1, 2, 3, 4, 5]) await service.create({ id, name: String(id) })

    const queries = ['', '?limit=1', '?limit=2', '?limit=3', '?limit=2147483647', '?after=1', '?after=3', '?limit=0']
    const answers = await Promise.all(queries.map((query) => service.list(query)))

    expect(answers.map((answer) => [namesIn(answer).join(), answer.headers.get('link')])).toEqual([
      ['1,2', '<?limit=2&after=2>; rel="next"'],
      ['1', '<?limit=1&after=1>; rel="next"'],
      ['1,2', '<?limit=2&after=2>; rel="next"'],
      ['1,2', '<?limit=2&after=2>; rel="next"'],
      ['1,2', '<?limit=2&after=2>; rel="next"'],
      ['2,3', '<?limit=2&after=3>; rel="next"'],
      ['4,5', null],
      ['', null],
    ])
    expect(answers.map((answer) => answer.headers.has('etag'))).toEqual(Array(8).fill(true))
    expect(await follow(service, '')).toEqual([['1', '2'], ['3', '4'], ['5']])
    expect(await links(service, ['?include=id'])).toEqual(['<?limit=2&after=2&include=id>; rel="next"'])
  })
})

const links = (service: Service, queries: readonly string[]) =>
  Promise.all(queries.map(async (query) => (await service.list(query)).headers.get('link')))

/** The names of each page from this query on. */
async function follow(service: Service, start: string): Promise<string[][]> {
  const pages: string[][] = []
  for (let query: string | undefined = start; query !== undefined; ) {
    const answer: Answer = await service.list(query)
    pages.push(namesIn(answer))
    query = nextOf(answer)
  }
  return pages
}
