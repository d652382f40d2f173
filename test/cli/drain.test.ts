import { describe, expect, test } from 'bun:test'
import { exchange } from '../support/raw-connection.ts'
import { addLongPlants, LONG_PLANTS, requestAndWait, sendHalf } from '../support/slow.ts'
import { storedPlants } from '../support/stored.ts'
import { serveDatabase } from './support/database.ts'

const DRAIN_WAIT_MS = 2000
/** The body of an answer that came in chunks (RFC 9112 §7.1), the last chunk included. */
function dechunk(answer: string): string {
  let rest = answer.slice(answer.indexOf('\r\n\r\n') + 4)
  const parts: string[] = []
  for (;;) {
    const end = rest.indexOf('\r\n')
    const length = Number.parseInt(rest.slice(0, end), 16)
    if (!(length > 0)) return length === 0 ? parts.join('') : `cut after ${parts.join('').length}`
    parts.push(rest.slice(end + 2, end + 2 + length))
    rest = rest.slice(end + 2 + length + 2)
  }
}

const get = (path: string, token: string) =>
  `GET ${path} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${token}\r\nConnection: close\r\n\r\n`

describe.concurrent('a server that ends', () => {
  test('takes new connections for --drain-wait, closes each after its answer, is not ready, and then takes none', async () => {
    await using service = await serveDatabase(['--drain-wait', '2s'])
    const { server, token } = service
    const keepAlive = (path: string) => get(path, token).replace('Connection: close\r\n', '')
    // From here on the list is in the list cache.
    const before = await exchange(server.port, keepAlive('/plants?limit=5'))
    const startMs = performance.now()
    server.signal('SIGTERM')
    while ((await exchange(server.port, keepAlive('/readyz'))).status === 200);
    const [readyz, healthz, list] = await Promise.all([
      exchange(server.port, keepAlive('/readyz')),
      exchange(server.port, keepAlive('/healthz')),
      exchange(server.port, keepAlive('/plants?limit=5')),
    ])
    while (await exchange(server.port, keepAlive('/healthz')).catch(() => undefined));
    const refusedMs = performance.now() - startMs

    const closing = ({ status, headers, isClosed, body }: typeof list) => ({
      status,
      connection: headers.get('connection'),
      isClosed,
      body: JSON.parse(body),
    })
    expect([before.status, before.headers.get('connection')]).toEqual([200, null])
    expect([readyz, healthz, list].map(closing)).toEqual([
      { status: 503, connection: 'close', isClosed: true, body: { error: 50303, message: expect.any(String) } },
      { status: 200, connection: 'close', isClosed: true, body: { status: 'ok' } },
      { status: 200, connection: 'close', isClosed: true, body: [] },
    ])
    expect(refusedMs).toBeGreaterThanOrEqual(DRAIN_WAIT_MS)
    expect(await server.ended()).toBe(0)
  })

  test('answers a slow client the whole list', async () => {
    await using service = await serveDatabase()
    const { server, token, database } = service
    addLongPlants(database)
    const reading = await requestAndWait(server.port, get('/plants', token))
    server.signal('SIGTERM')
    while (!server.stdout().includes('"ending"')) await Bun.sleep(5)
    const answer = await reading.readOn()

    const plant = { name: '0'.repeat(LONG_PLANTS.nameLength) }
    expect(answer).toStartWith('HTTP/1.1 200 OK\r\n')
    expect(dechunk(answer) === JSON.stringify(Array.from({ length: LONG_PLANTS.count }, () => plant))).toBe(true)
    expect(await server.ended()).toBe(0)
  })

  test('cuts a list after --drain if its client stops reading, without the last chunk', async () => {
    await using service = await serveDatabase(['--drain', '1s'])
    const { server, token, database } = service
    addLongPlants(database)
    const reading = await requestAndWait(server.port, get('/plants', token))
    server.signal('SIGTERM')
    const exitCode = await server.ended()
    const answer = await reading.readOn().catch(() => '')

    expect(exitCode).toBe(0)
    expect(answer.endsWith('0\r\n\r\n')).toBe(false)
    expect(server.stdout()).toContain('requests were cut')
  })

  test('stores and answers a create while its body still arrives', async () => {
    await using service = await serveDatabase()
    const { server, token, database } = service
    const body = '{"id":1,"name":"Fern"}'
    const head = `POST /plants HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${token}\r\nContent-Type: application/json\r\n`
    using creating = sendHalf(server.port, `${head}Content-Length: ${body.length}\r\n\r\n${body.slice(0, 10)}`)
    // The handler has begun once a later request on another connection is answered.
    await exchange(server.port, get('/healthz', token))
    server.signal('SIGTERM')
    while (!server.stdout().includes('"ending"')) await Bun.sleep(5)
    const answer = await creating.sendRest(body.slice(10))

    expect(answer).toStartWith('HTTP/1.1 200 OK\r\n')
    expect(answer).toEndWith('{"name":"Fern"}')
    expect(await server.ended()).toBe(0)
    expect(await storedPlants(database)).toEqual([{ user_id: 1n, id: 1n, name: 'Fern', tag: null }])
  })
})
