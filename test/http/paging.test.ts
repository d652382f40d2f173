import { describe, expect, test } from 'bun:test'
import { PAGE_PLANTS } from '../../src/http/list.ts'
import { exchange } from '../support/raw.ts'
import { type Answer, type Service, SOCKET_TRANSPORTS, startService, TRANSPORTS } from '../support/service.ts'

const INT64_MIN = -(2n ** 63n)
const INT64_MAX = 2n ** 63n - 1n

/** Two pages of the store and one plant more, so that every edge between pages is met. */
const MANY = 2 * PAGE_PLANTS + 1

describe.each(TRANSPORTS)('the Link of a list, $name', (transport) => {
  test('leads to the plants that follow, as a relative reference', async () => {
    await using service = await startService(transport)
    for (const id of [-5, 0, 7]) await service.create({ id, name: `Plant ${id}` })

    expect(await links(service, ['?limit=1', '?limit=2', '?limit=1&after=-5', '?x=1&limit=2&y=2'])).toEqual([
      '<?limit=1&after=-5>; rel="next"',
      '<?limit=2&after=0>; rel="next"',
      '<?limit=1&after=0>; rel="next"',
      '<?limit=2&after=0>; rel="next"',
    ])
  })

  test('is absent where nothing follows, from a list of nothing and from one without a limit', async () => {
    await using service = await startService(transport)
    for (const id of [-5, 0, 7]) await service.create({ id, name: `Plant ${id}` })

    const queries = ['?limit=3', '?limit=4', '?limit=2&after=-5', '?limit=1&after=7', '?limit=0', '?limit=0&after=-5']
    expect(await links(service, [...queries, '', '?after=-5'])).toEqual(Array(8).fill(null))
  })

  test('is exact at the ends of int64', async () => {
    await using service = await startService(transport)
    for (const id of [INT64_MIN, 9007199254740993n, INT64_MAX]) await service.create(`{"id":${id},"name":"${id}"}`)

    expect(await follow(service, '?limit=1')).toEqual([[String(INT64_MIN)], ['9007199254740993'], [String(INT64_MAX)]])
    expect(await links(service, ['?limit=1', '?limit=2'])).toEqual([
      `<?limit=1&after=${INT64_MIN}>; rel="next"`,
      '<?limit=2&after=9007199254740993>; rel="next"',
    ])
  })

  test('leads through every plant once, whatever the limit', async () => {
    await using service = await startService(transport)
    const names = await createMany(service)
    const limits = [PAGE_PLANTS - 1, PAGE_PLANTS, PAGE_PLANTS + 1, MANY - 1, MANY, MANY + 1, 100, 7]

    for (const limit of limits) {
      const pages = await follow(service, `?limit=${limit}`)
      expect([limit, pages.flat()]).toEqual([limit, names])
      expect([limit, pages.length]).toEqual([limit, Math.ceil(MANY / limit)])
    }
  })

  test('leads through every plant once while others come and go', async () => {
    await using service = await startService(transport)
    for (let id = 0; id < 20; id += 2) await service.create({ id, name: `${id}` })

    const seen: string[] = []
    for (let query: string | undefined = '?limit=3'; query !== undefined; ) {
      const answer: Answer = await service.list(query)
      seen.push(...namesIn(answer))
      const last = Number(seen.at(-1))
      await service.delete(last)
      await service.create({ id: last - 1, name: 'behind' })
      await service.create({ id: last + 1, name: `${last + 1}` })
      query = nextOf(answer)
    }

    const kept = seen.filter((name) => Number(name) % 2 === 0)
    expect(kept).toEqual(Array.from({ length: 10 }, (_, index) => String(2 * index)))
    expect(seen).toEqual(seen.toSorted((a, b) => Number(a) - Number(b)))
    expect(new Set(seen).size).toBe(seen.length)
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
  })
})

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

const links = (service: Service, queries: readonly string[]) =>
  Promise.all(queries.map(async (query) => (await service.list(query)).headers.get('link')))

const nextOf = ({ headers }: Answer): string | undefined =>
  /^<([^>]*)>; rel="next"$/.exec(headers.get('link') ?? '')?.[1]

const namesIn = ({ body }: Answer): string[] => body.map((plant: { name: string }) => plant.name)

/** The names of all pages from one query on. */
async function follow(service: Service, start: string): Promise<string[][]> {
  const pages: string[][] = []
  for (let query: string | undefined = start; query !== undefined; ) {
    const answer: Answer = await service.list(query)
    pages.push(namesIn(answer))
    query = nextOf(answer)
  }
  return pages
}

/** Creates `MANY` plants for user `me`. Returns their names in the order of their ids. */
async function createMany({ store }: Service): Promise<string[]> {
  const [token] = await store.listTokens('me')
  if (token === undefined) throw new Error('user me has no token')
  const ids = Array.from({ length: MANY }, (_, index) => index - PAGE_PLANTS)
  for (const id of ids) await store.createPlant(token.userId, { id: BigInt(id), name: String(id) })
  return ids.map(String)
}

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
