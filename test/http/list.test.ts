import { describe, expect, test } from 'bun:test'
import { INT64_MAX, INT64_MIN } from '../../src/domain/int64.ts'
import { namesIn } from './support/long-lists.ts'
import { type Service, startService } from './support/service.ts'
import { TRANSPORTS } from './support/transports.ts'

const LIMIT_MAX = 2147483647

/** Ids in an order that is neither that of numbers nor that of text. */
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

describe.each(TRANSPORTS)('GET /plants, $name', (transport) => {
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

  test('answers with plants by id, as numbers, and the first ones, as many as limit says', async () => {
    await using service = await startService(transport)
    for (const query of ['', '?limit=5']) expect((await service.list(query)).text).toBe('[]')
    await createAll(service)

    expect(await service.names()).toEqual(ASCENDING)
    for (const limit of [0, 1, 2, IDS.length - 1, IDS.length, IDS.length + 1, 1000, LIMIT_MAX]) {
      expect(await namesOf(service, `?limit=${limit}`)).toEqual(ASCENDING.slice(0, limit))
    }
  })

  test('answers with the plants after an id, whether or not there is a plant with that id', async () => {
    await using service = await startService(transport)
    await createAll(service)

    for (const after of [INT64_MIN, INT64_MIN + 1n, -10n, -5n, -1n, 0n, 9n, 50n, 9007199254740992n, INT64_MAX]) {
      const larger = ASCENDING.filter((id) => BigInt(id) > after)
      expect([after, await namesOf(service, `?after=${after}`)]).toEqual([after, larger])
      expect([after, await namesOf(service, `?after=${after}&limit=2`)]).toEqual([after, larger.slice(0, 2)])
    }
  })

  test.each([
    ['a limit that is no whole decimal number from 0 to 2147483647', REFUSED_LIMITS, /`limit` must be/],
    ['an after that is no decimal int64', REFUSED_AFTERS, /`after` must be/],
    ['a parameter that is empty or given twice, or one of two that is wrong', REFUSED_QUERIES, /must be/],
  ])('refuses %s', async (_, queries, message) => {
    await using service = await startService(transport)

    for (const query of queries) {
      const { status, body } = await service.list(query)
      const refusal = { error: 40003, message: expect.stringMatching(message) }
      expect({ query, status, body }).toEqual({ query, status: 400, body: refusal })
    }
  })

  test('ignores other query parameters, and Accept', async () => {
    await using service = await startService(transport)
    await createAll(service)

    const others = ['?', '?&', '?x=1&x=2', '?Limit=1', '?LIMIT=x', '?limit%20=1', '?limits=1&offset=3', '?=1']
    for (const query of [...others, '??limit=1', '?%']) {
      expect([query, await namesOf(service, query)]).toEqual([query, ASCENDING])
    }
    expect(await namesOf(service, '?id=5&limit=2&tag=x&sort=desc')).toEqual(ASCENDING.slice(0, 2))
    for (const accept of ['text/html', 'application/xml;q=1, application/json;q=0', 'nonsense']) {
      const answer = await service.list('', { headers: { accept } })
      expect([answer.status, answer.headers.get('content-type')]).toEqual([200, 'application/json'])
    }
  })
})

async function createAll(service: Service): Promise<void> {
  for (const id of IDS) await service.create(`{"id":${id},"name":"${id}"}`)
}

const namesOf = async (service: Service, query: string) => namesIn(await service.list(query))
