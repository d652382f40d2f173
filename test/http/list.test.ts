import { describe, expect, test } from 'bun:test'
import { exchange } from '../support/raw-connection.ts'
import { type Service, SOCKET_TRANSPORTS, startService, TRANSPORTS } from './support/service.ts'

const INT64_MIN = -(2n ** 63n)
const INT64_MAX = 2n ** 63n - 1n
const LIMIT_MAX = 2147483647

/** Ids in an order in which they are not listed, neither as numbers nor as text. */
const IDS = [10n, -1n, 9n, INT64_MAX, 0n, 100n, -10n, 9007199254740993n, INT64_MIN, 9007199254740992n, -9n, 1n]
const ASCENDING = IDS.toSorted((a, b) => (a < b ? -1 : 1)).map(String)

const REFUSED_LIMITS = [
  ...['-1', '-0', '1.5', '1.0', '1e3', '0x10', '%205', '5%20', '+5', '%2B5', '05', '00', '', '5,5', '5%00', 'NaN'],
  ...['Infinity', 'ten', 'null', 'true', '5n', '1_000', '%D9%A5', '%EF%BC%95', '5%0A', '[5]', '%', '"5"'],
  ...[String(LIMIT_MAX + 1), '9'.repeat(11), '9'.repeat(5000)],
].map((limit) => `?limit=${limit}`)

const REFUSED_AFTERS = [
  ...['-0', '+1', '%2B1', '01', '-01', '1.0', '1e3', '0x10', '%201', '1%20', '', '-', '--1', 'abc', '1,2', '1%00', '%'],
  ...[String(INT64_MAX + 1n), String(INT64_MIN - 1n), '9'.repeat(5000)],
].map((after) => `?after=${after}`)

const REFUSED_QUERIES = [
  ...['?limit', '?after', '?limit=5&limit=5', '?limit=5&limit=', '?limit=5&x=1&%6Cimit=6', '?after=1&after=1'],
  ...['?limit=5&after=x', '?limit=x&after=5', '?after=1&limit=', '?limit=0&after=1.0'],
]

describe.each(TRANSPORTS)('listPlants, $name', (transport) => {
  test('answers with an array of plants, without their ids', async () => {
    await using service = await startService(transport)
    await service.create({ id: 1, name: 'Fern', tag: 'shade' })
    await service.create({ id: 2, name: 'Ivy' })
    await service.create({ id: 3, name: '', tag: '' })
    const text = '[{"name":"Fern","tag":"shade"},{"name":"Ivy"},{"name":"","tag":""}]'

    for (const query of ['', '?limit=3']) {
      const answer = await service.list(query)
      expect([answer.status, answer.headers.get('content-type'), answer.text]).toEqual([200, 'application/json', text])
    }
  })

  test('answers with an empty array where there is nothing', async () => {
    await using service = await startService(transport)

    for (const query of ['', '?limit=5', '?limit=0', '?after=0', '?limit=5&after=-5']) {
      const answer = await service.list(query)
      expect([query, answer.status, answer.text]).toEqual([query, 200, '[]'])
    }
  })

  test('orders by id, as numbers', async () => {
    await using service = await startService(transport)
    await createAll(service)

    expect(await service.names()).toEqual(ASCENDING)
    expect(await namesOf(service, '?limit=100')).toEqual(ASCENDING)
  })

  test('answers with at most limit plants, the first ones', async () => {
    await using service = await startService(transport)
    await createAll(service)

    for (const limit of [0, 1, 2, IDS.length - 1, IDS.length, IDS.length + 1, 1000, LIMIT_MAX]) {
      expect(await namesOf(service, `?limit=${limit}`)).toEqual(ASCENDING.slice(0, limit))
    }
  })

  test('answers with the plants after an id, be there a plant with it or not', async () => {
    await using service = await startService(transport)
    await createAll(service)

    for (const after of [INT64_MIN, INT64_MIN + 1n, -10n, -5n, -1n, 0n, 9n, 50n, 9007199254740992n, INT64_MAX]) {
      const larger = ASCENDING.filter((id) => BigInt(id) > after)
      expect([after, await namesOf(service, `?after=${after}`)]).toEqual([after, larger])
      expect([after, await namesOf(service, `?after=${after}&limit=2`)]).toEqual([after, larger.slice(0, 2)])
    }
  })

  test('refuses a limit that is no whole decimal number from 0 to 2147483647', async () => {
    await using service = await startService(transport)

    for (const query of REFUSED_LIMITS) expect(await refusal(service, query)).toEqual(refused(query, /`limit` must be/))
  })

  test('refuses an after that is no decimal int64', async () => {
    await using service = await startService(transport)

    for (const query of REFUSED_AFTERS) expect(await refusal(service, query)).toEqual(refused(query, /`after` must be/))
  })

  test('refuses a parameter that is empty or given twice, or one of two that is wrong', async () => {
    await using service = await startService(transport)

    for (const query of REFUSED_QUERIES) expect(await refusal(service, query)).toEqual(refused(query, /must be/))
  })

  test('ignores other query parameters, and Accept', async () => {
    await using service = await startService(transport)
    await createAll(service)

    for (const query of [
      '?',
      '?&',
      '?x=1&x=2',
      '?Limit=1',
      '?LIMIT=x',
      '?limit%20=1',
      '?limits=1&offset=3',
      '?=1',
      '??limit=1',
      '?%',
    ]) {
      expect([query, await namesOf(service, query)]).toEqual([query, ASCENDING])
    }
    expect(await namesOf(service, '?id=5&limit=2&tag=x&sort=desc')).toEqual(ASCENDING.slice(0, 2))
    for (const accept of ['text/html', 'application/xml;q=1, application/json;q=0', 'nonsense']) {
      const answer = await service.list('', { headers: { accept } })
      expect([answer.status, answer.headers.get('content-type')]).toEqual([200, 'application/json'])
    }
  })

  test('shows a user their own plants alone', async () => {
    await using service = await startService(transport)
    const { text: yours } = await service.createToken({ user: 'you' })
    const { text: nobodys } = await service.createToken({ user: 'nobody' })
    for (const id of [1, 3, 5]) await service.create({ id, name: `mine ${id}` })
    for (const id of [2, 3, 4]) await service.create({ id, name: `yours ${id}` }, { token: yours })

    expect(await service.names()).toEqual(['mine 1', 'mine 3', 'mine 5'])
    expect(await service.names(yours)).toEqual(['yours 2', 'yours 3', 'yours 4'])
    expect(await service.names(nobodys)).toEqual([])
    const capped = await service.list('?limit=2', { token: yours })
    expect([capped.body, capped.headers.get('link')]).toEqual([
      [{ name: 'yours 2' }, { name: 'yours 3' }],
      '<?limit=2&after=3>; rel="next"',
    ])
  })

  test('shows the same plants to all tokens of a user', async () => {
    await using service = await startService(transport)
    const { text: write } = await service.createToken()
    const { text: read } = await service.createToken({ scope: 'read' })
    await service.create({ id: 1, name: 'Fern' })
    await service.create({ id: 2, name: 'Ivy' }, { token: write })

    expect([await service.names(), await service.names(write), await service.names(read)]).toEqual(
      Array(3).fill(['Fern', 'Ivy']),
    )
  })
})

describe.each(SOCKET_TRANSPORTS)('listPlants on the wire, $name', (transport) => {
  test('shows what was created and deleted before, on whichever connection', async () => {
    await using service = await startService(transport)

    for (let id = 1; id <= 20; id++) {
      await service.create({ id, name: `Plant ${id}` })
      for (const query of ['', '?limit=5']) {
        expect(await listAnew(service, query)).toEqual([{ name: `Plant ${id}` }])
      }
      await service.delete(id)
      for (const query of ['', '?limit=5']) expect(await listAnew(service, query)).toEqual([])
    }
  })

  test('ignores a body, and does not wait for it', async () => {
    await using service = await startService(transport)
    await service.create({ id: 1, name: 'Fern' })
    const bodies = [
      'Content-Length: 9\r\n\r\n{"limit":',
      'Content-Length: 70000\r\n\r\n',
      'Transfer-Encoding: chunked\r\n\r\n',
    ]

    for (const body of bodies) {
      const answer = await exchange(service.port, `GET /plants?limit=5 HTTP/1.1\r\n${head(service)}${body}`)
      expect([answer.status, answer.body]).toEqual([200, '[{"name":"Fern"}]'])
    }
  })
})

async function createAll(service: Service): Promise<void> {
  for (const id of IDS) await service.create(`{"id":${id},"name":"${id}"}`)
}

async function namesOf(service: Service, query: string): Promise<string[]> {
  const { body } = await service.list(query)
  return body.map((plant: { name: string }) => plant.name)
}

async function refusal(service: Service, query: string) {
  const { status, body } = await service.list(query)
  return { query, status, body }
}

const refused = (query: string, message: RegExp) => ({
  query,
  status: 400,
  body: { error: 40003, message: expect.stringMatching(message) },
})

const head = ({ token }: Service) => `Host: localhost\r\nConnection: close\r\nAuthorization: Bearer ${token}\r\n`

/** Lists on a connection of its own. */
async function listAnew(service: Service, query: string): Promise<unknown> {
  const { body } = await exchange(service.port, `GET /plants${query} HTTP/1.1\r\n${head(service)}\r\n`)
  return JSON.parse(body)
}
