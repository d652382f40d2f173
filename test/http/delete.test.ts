import { describe, expect, test } from 'bun:test'
import { exchange } from '../support/raw-connection.ts'
import { storedPlants } from '../support/stored.ts'
import { type Answer, type Service, SOCKET_TRANSPORTS, startService, TRANSPORTS } from './support/service.ts'

const INT64_MIN = -(2n ** 63n)
const INT64_MAX = 2n ** 63n - 1n

/** What no `{id}` may be, percent-encoded as it stands in the path. */
const REFUSED_IDS = [
  ...['-0', '+1', '01', '1.0', '1.5', '1e0', '5e-1', '-01', '00', '-', '--1', '0x1', '0b1', '1n', '1_0', '1,0', '1-1'],
  ...['abc', 'NaN', 'Infinity', 'null', 'undefined', '*', '%2B1', '%2D0', '%30%31', '1%2E0', '%201', '1%20', '1%0A'],
  ...[
    '%091',
    '1%00',
    '%00',
    '1%2F',
    '%2F1',
    '1%2F1',
    '1%3F',
    '1%23',
    '1;x=1',
    '1:1',
    '%EF%BC%91',
    '%D9%A1',
    '%E2%88%921',
  ],
  // Decoded once, these are not ids any more; decoded twice, they would be.
  ...['%2531', '%252D1', '1%2530'],
  // No percent-encoding of UTF-8 at all.
  ...['%', '%1', '%zz', '1%', '%ff', '%c3', '%ED%A0%80'],
  ...[String(INT64_MAX + 1n), String(INT64_MIN - 1n), '18446744073709551617', '9'.repeat(5000), `-${'9'.repeat(5000)}`],
]

describe.each(TRANSPORTS)('deletePlant, $name', (transport) => {
  test('deletes the plant and answers without a body', async () => {
    await using service = await startService(transport)
    for (const id of [1, 2, 3]) await service.create({ id, name: `Plant ${id}` })

    const answer = await service.delete(2)

    expect([answer.status, answer.text, answer.headers.get('content-type')]).toEqual([204, '', null])
    expect(await service.names()).toEqual(['Plant 1', 'Plant 3'])
  })

  test('has the plant out of the database when it answers', async () => {
    await using service = await startService(transport)
    await service.create({ id: 1, name: 'Fern' })
    await service.create({ id: 2, name: 'Ivy' })

    await service.delete(1)

    expect((await storedPlants(service.database)).map(({ id }) => id)).toEqual([2n])
  })

  test('frees the id', async () => {
    await using service = await startService(transport)
    await service.create({ id: 1, name: 'Fern', tag: 'shade' })
    await service.delete(1)

    expect((await service.create({ id: 1, name: 'Ivy' })).status).toBe(200)
    expect((await service.list()).text).toBe('[{"name":"Ivy"}]')
  })

  test('takes every int64, and deletes no neighbour', async () => {
    await using service = await startService(transport)
    const ids = [
      INT64_MIN,
      INT64_MIN + 1n,
      -1n,
      0n,
      1n,
      9007199254740992n,
      9007199254740993n,
      INT64_MAX - 1n,
      INT64_MAX,
    ]
    for (const id of ids) await service.create(`{"id":${id},"name":"${id}"}`)

    const left = new Set(ids.map(String))
    for (const id of ids.toReversed()) {
      expect((await service.delete(id)).status).toBe(204)
      left.delete(String(id))
      expect(await service.names()).toEqual([...left])
    }
  })

  test('decodes percent-encodings once', async () => {
    await using service = await startService(transport)
    const encodings = { '%35': 5, '%2D7': -7, '1%30': 10, '%2d%37': -7, '%31%32%33': 123 }

    for (const [encoded, id] of Object.entries(encodings)) {
      await service.create({ id, name: 'Fern' })
      expect([encoded, (await service.delete(encoded)).status]).toEqual([encoded, 204])
    }
    expect(await service.names()).toEqual([])
  })

  test('refuses an id that is not a decimal int64', async () => {
    await using service = await startService(transport)
    for (const id of [0, 1, -1, 10]) await service.create({ id, name: String(id) })

    for (const id of REFUSED_IDS) expect([id, ...refusal(await service.delete(id))]).toEqual([id, 400, error(40004)])
    expect(await service.names()).toEqual(['-1', '0', '1', '10'])
  })

  test('refuses a plant that is absent, was deleted before, or is of somebody else', async () => {
    await using service = await startService(transport)
    const { text: token } = await service.createToken({ user: 'you' })
    await service.create({ id: 1, name: 'Fern' })
    await service.create({ id: 2, name: 'Ivy' })
    await service.delete(1)

    for (const id of [7, INT64_MIN, INT64_MAX, 1]) {
      expect([id, ...refusal(await service.delete(id))]).toEqual([id, 404, error(40402)])
    }
    expect(refusal(await service.delete(2, { token }))).toEqual([404, error(40402)])
    expect(await service.names()).toEqual(['Ivy'])
  })

  test("deletes the user's own plant where another user has the same id", async () => {
    await using service = await startService(transport)
    const { text: token } = await service.createToken({ user: 'you' })
    await service.create({ id: 1, name: 'Mine' })
    await service.create({ id: 1, name: 'Yours' }, { token })

    expect((await service.delete(1, { token })).status).toBe(204)

    expect([await service.names(), await service.names(token)]).toEqual([['Mine'], []])
  })

  test('answers one of many that delete the same plant with 204', async () => {
    await using service = await startService(transport)
    await service.create({ id: 1, name: 'Fern' })

    const answers = await Promise.all(Array.from({ length: 8 }, () => service.delete(1)))

    expect(answers.map(({ status }) => status).toSorted((a, b) => a - b)).toEqual([204, ...Array(7).fill(404)])
  })

  test('ignores query parameters and bodies', async () => {
    await using service = await startService(transport)
    for (const id of [1, 2, 3]) await service.create({ id, name: String(id) })

    const answers = [
      await service.delete('1?id=2&limit=x'),
      await service.delete(2, { body: '{"id":3}', headers: { 'content-type': 'application/json' } }),
    ]

    expect(answers.map(({ status, text }) => [status, text])).toEqual([
      [204, ''],
      [204, ''],
    ])
    expect(await service.names()).toEqual(['3'])
  })

  test('knows no path below or beside a plant', async () => {
    await using service = await startService(transport)
    await service.create({ id: 1, name: 'Fern' })

    for (const path of ['1/', '', '1/1', '/1', '1/..', '%2e']) {
      expect([path, (await service.delete(path)).status]).not.toEqual([path, 204])
    }
    expect(await service.names()).toEqual(['Fern'])
  })
})

describe.each(SOCKET_TRANSPORTS)('deletePlant on the wire, $name', (transport) => {
  test('answers with the same bytes, be the plant absent, deleted before or of somebody else', async () => {
    await using service = await startService(transport)
    const { text: token } = await service.createToken({ user: 'you' })
    await service.create({ id: 1, name: 'Fern' })
    await service.create({ id: 2, name: 'Ivy' }, { token })
    await service.delete(1)

    const [absent, deleted, others] = [await wire(service, '7'), await wire(service, '1'), await wire(service, '2')]

    expect(absent).toStartWith('HTTP/1.1 404 ')
    expect(absent).toContain('"error":40402')
    expect([deleted, others]).toEqual([absent, absent])
    expect(await service.names(token)).toEqual(['Ivy'])
  })

  test('answers success with neither body nor what describes one', async () => {
    await using service = await startService(transport)
    await service.create({ id: 1, name: 'Fern' })

    const { status, headers, body } = await exchange(service.port, request(service, '1'))

    expect([status, body]).toEqual([204, ''])
    expect([...headers.keys()].toSorted()).toEqual(['cache-control', 'date', 'x-content-type-options', 'x-request-id'])
  })

  test('does not wait for a body that was announced', async () => {
    await using service = await startService(transport)
    const announced = ['Content-Length: 20', 'Content-Length: 70000', 'Transfer-Encoding: chunked']

    for (const line of announced) {
      await service.create({ id: 1, name: 'Fern' })
      const { status } = await exchange(service.port, request(service, '1', `${line}\r\n`))
      expect([line, status]).toEqual([line, 204])
    }
  })

  test('refuses bytes in the path that are no ASCII', async () => {
    await using service = await startService(transport)

    for (const id of ['１', '١', '\u2212' + '1']) {
      const { status, body } = await exchange(service.port, request(service, id))
      expect([id, status, JSON.parse(body)]).toEqual([id, 400, error(40004)])
    }
  })
})

const error = (code: number) => ({ error: code, message: expect.stringMatching(/\w/) })
const refusal = ({ status, body }: Answer) => [status, body]

const request = ({ token }: Service, id: string, lines = '') =>
  `DELETE /plants/${id} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nAuthorization: Bearer ${token}\r\n${lines}\r\n`

/** All that comes back, but for what the contract excepts from "the same bytes". */
async function wire(service: Service, id: string): Promise<string> {
  const { text } = await exchange(service.port, request(service, id))
  return text.replaceAll(/^(?:x-request-id|date): .*\r\n/gim, '')
}
