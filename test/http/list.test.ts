import { describe, expect, test } from 'bun:test'
import { INT64_MAX, INT64_MIN } from '../../src/domain/int64.ts'
import { namesIn } from './support/long-lists.ts'
import { startService } from './support/service.ts'
import { TRANSPORTS } from './support/transports.ts'

const LIMIT_MAX = 2147483647

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

const REFUSED_INCLUDES = ['', 'ID', 'name', 'id,name', ' id', 'id&include=id', 'id&include='].map(
  (include) => `?include=${include}`,
)

// socket/plants-model.test.ts proves the order, `limit` and `after` for any plants.
describe.each(TRANSPORTS)('GET /plants, $name', (transport) => {
  test.each([
    ['a limit that is no whole decimal number from 0 to 2147483647', REFUSED_LIMITS, /`limit` must be/],
    ['an after that is no decimal int64', REFUSED_AFTERS, /`after` must be/],
    ['a parameter that is empty or given twice, or one of two that is wrong', REFUSED_QUERIES, /must be/],
    ['an include other than id, or given twice', REFUSED_INCLUDES, /`include` must be/],
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
    for (const id of [1, 2, 3]) await service.create({ id, name: String(id) })

    const others = ['?', '?&', '?x=1&x=2', '?Limit=1', '?LIMIT=x', '?limit%20=1', '?limits=1&offset=3', '?=1']
    for (const query of [...others, '??limit=1', '?%']) {
      expect([query, namesIn(await service.list(query))]).toEqual([query, ['1', '2', '3']])
    }
    expect(namesIn(await service.list('?id=5&limit=2&tag=x&sort=desc'))).toEqual(['1', '2'])
    for (const accept of ['text/html', 'application/xml;q=1, application/json;q=0', 'nonsense']) {
      const answer = await service.list('', { headers: { accept } })
      expect([answer.status, answer.headers.get('content-type')]).toEqual([200, 'application/json'])
    }
  })
})
