import { describe, expect, test } from 'bun:test'
import { RequestStatistics } from '../../src/http/statistics.ts'
import { formatRequest, openConnection } from '../support/raw-connection.ts'
import { until } from '../support/until.ts'
import { startWithCases } from './support/cases.ts'
import { countPages, createMany } from './support/long-lists.ts'
import { listRequest, startService } from './support/service.ts'
import { OVER_TCP, SOCKET_TRANSPORTS } from './support/transports.ts'

/** The lines of requests, once a condition holds. */
async function requestLines(logs: () => string, holds: (lines: readonly string[]) => boolean) {
  const lines = () => logs().match(/\{.*"msg":"request"\}(?=\n)/g) ?? []
  await until('the requests are logged', (see) => holds(see(lines())))
  return lines().map((line) => JSON.parse(line))
}

/** The `bytes` of requests by their ids, once each has a line. */
async function loggedBytes(logs: () => string, ids: readonly string[]) {
  const lines = await requestLines(logs, (written) => ids.every((id) => written.some((line) => line.includes(id))))
  return new Map(lines.map(({ requestId, bytes }) => [requestId, bytes]))
}

describe.each(SOCKET_TRANSPORTS)('the bytes of a line of the log, $name', (transport) => {
  test('are those of the body that the client reads, for every endpoint and every error', async () => {
    const { service, all } = await startWithCases(transport)
    await using _service = service
    const sent = new Map<string, number>()
    const names = new Map<string, string>()
    for (const [name, method, path, options] of all) {
      const { headers, text } = await service.request(method, path, options)
      const id = headers.get('x-request-id') ?? ''
      names.set(id, name)
      sent.set(id, Buffer.byteLength(text))
    }
    const bytes = await loggedBytes(service.logs, [...sent.keys()])

    expect([...sent].map(([id, count]) => [names.get(id), count])).toEqual(
      [...sent].map(([id]) => [names.get(id), bytes.get(id)]),
    )
    expect([...sent.values()].filter((count) => count > 0).length).toBeGreaterThan(20)
  })

  test('are those of UTF-8, in a list from the store, from the cache, streamed, and of more than 256 KiB', async () => {
    await using service = await startService(transport)
    await service.create({ id: 1, name: 'Bogenhanf, wei\u00df \ud83c\udf31' })
    for (let id = 2; id <= 7; id++) await service.create({ id, name: '\u00e9'.repeat(25_000) })
    const queries = ['?limit=1', '?limit=1', '?limit=4', '?limit=4', '?limit=7', '', '?after=6&include=id']
    const answers = []
    for (const query of queries) answers.push(await service.list(query))
    const ids = answers.map(({ headers }) => headers.get('x-request-id') ?? '')
    const bytes = await loggedBytes(service.logs, ids)

    const sent = answers.map(({ text }) => Buffer.byteLength(text))
    expect(ids.map((id) => bytes.get(id))).toEqual(sent)
    expect(sent[4]).toBeGreaterThan(256 * 1024)
  })
})

describe.each(OVER_TCP)('the statistics of requests, $name', (transport) => {
  test('count the bytes of all bodies, and those of a list without a limit part by part', async () => {
    const statistics = new RequestStatistics()
    const later = Promise.withResolvers<void>()
    const { overrideStore } = countPages({ failAt: 3, ready: () => later.promise })
    await using service = await startService(transport, { overrideStore, app: { statistics } })
    await createMany(service.store)
    const answers = [await service.get(0), await service.request('HEAD', '/plants/0'), await service.get(1)]
    const sent = answers.reduce((sum, { text }) => sum + Buffer.byteLength(text), 0)
    expect(statistics.bodyBytes).toBe(sent)

    using connection = await openConnection(service.port)
    await connection.send(listRequest(service.token))
    await connection.until(() => connection.text().includes('"1998"'))

    const parts = connection.text().match(/^[[,]\{.*\}$/gm) ?? []
    expect(parts).toHaveLength(2)
    expect(statistics.bodyBytes).toBe(sent + Buffer.byteLength(parts.join('')))
    expect(statistics.inFlight).toBe(1)
    later.resolve()
    await connection.until(connection.isClosed)
  })
})

describe.each(OVER_TCP)('a body that no operation takes, $name', (transport) => {
  test('keeps its request in flight and without a line until it ends, but the duration ends before it', async () => {
    const statistics = new RequestStatistics()
    let ms = 0
    await using service = await startService(transport, { app: { statistics, monotonicMs: () => ms } })
    using connection = await service.connect()
    const request = formatRequest('POST', '/plants', 'unknown', { id: 1, name: 'Fern' })
    await connection.send(request.slice(0, -1))
    await until('the request is in flight', () => statistics.inFlight === 1)
    // This one comes later, so the other answer is ready when it is answered.
    await service.list()
    ms = 5000
    const before = [service.logLines().map(({ operation }) => operation), statistics.inFlight, statistics.operations]
    expect(before).toEqual([['listPlants'], 1, { listPlants: expect.anything() }])

    expect(await connection.request(request.slice(-1))).toMatchObject({ status: 401 })

    const { status, durationMs } = service.logLines()[1] ?? {}
    const { statuses, durationsS } = statistics.operations.createPlant ?? {}
    expect([status, durationMs, statuses, durationsS?.sum, statistics.inFlight]).toEqual([401, 0, { 401: 1 }, 0, 0])
  })
})

describe.each(SOCKET_TRANSPORTS)('a list without a limit, $name', (transport) => {
  test('has its line at its end, with what was handed over, if the client goes away', async () => {
    await using service = await startService(transport)
    await createMany(service.store)
    const complete = (await service.list()).text
    const connection = await openConnection(service.port)
    await connection.send(listRequest(service.token))
    await connection.until(() => connection.text().includes('"0"'))
    connection[Symbol.dispose]()
    const [whole, cut] = await requestLines(service.logs, (lines) => lines.length === 2)

    expect(whole.bytes).toBe(Buffer.byteLength(complete))
    expect(cut.bytes).toBeGreaterThan(0)
    expect(cut.bytes).toBeLessThanOrEqual(whole.bytes)
  })
})
