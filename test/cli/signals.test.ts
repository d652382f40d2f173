import { describe, expect, test } from 'bun:test'
import { existsSync } from 'node:fs'
import { runPlantstore, serve } from '../support/executable.ts'
import { exchange } from '../support/raw-connection.ts'
import { SLACK_MS } from '../support/slack.ts'
import { addLongPlants, LONG_PLANTS, requestAndWait, sendHalf } from '../support/slow.ts'
import { until } from '../support/until.ts'
import { serveDatabase } from './support/database.ts'

/** How a shell says that SIGTERM ended a process. */
const TERMINATED = 143

const halfBody = (token: string) =>
  `POST /plants HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${token}\r\nContent-Type: application/json\r\nContent-Length: 99\r\n\r\n{"id"`

describe('a signal', () => {
  test.each(['SIGTERM', 'SIGINT'] as const)(
    '%s ends a server with 0 within --drain, and its database is whole',
    async (signal) => {
      await using service = await serveDatabase(['--drain', '2s'])
      const { server, token, database } = service
      const created = await server.request('POST', '/plants', { token, body: '{"id":1,"name":"Fern"}' })
      const hadWal = existsSync(`${database}-wal`)
      const startMs = performance.now()
      server.signal(signal)
      const exitCode = await server.ended()

      expect(exitCode).toBe(0)
      expect(performance.now() - startMs).toBeLessThan(2000 + SLACK_MS)
      expect({ created: created.status, hadWal }).toEqual({ created: 200, hadWal: true })
      expect([existsSync(`${database}-wal`), existsSync(`${database}-shm`)]).toEqual([false, false])
      await using again = await serve(database)
      expect(await (await again.request('GET', '/plants', { token })).json()).toEqual([{ name: 'Fern' }])
      expect(await runPlantstore(['check', '--database', database])).toMatchObject({ exitCode: 0 })
    },
  )

  test('ends the server at once when it comes a second time', async () => {
    await using service = await serveDatabase(['--drain', '1h'])
    const { server, token, database } = service
    using _part = await sendHalf(server.port, halfBody(token))
    await server.request('GET', '/plants', { token })
    server.signal('SIGTERM')
    await until('the server is ending', () => server.stdout().includes('"ending"'))
    const startMs = performance.now()
    server.signal('SIGTERM')

    expect(await server.ended()).toBe(TERMINATED)
    expect(performance.now() - startMs).toBeLessThan(SLACK_MS)
    expect(await runPlantstore(['check', '--database', database])).toMatchObject({ exitCode: 0 })
  })
})

/** The end of a list that was sent whole, with its last chunk. */
const LIST_END = ']\r\n0\r\n\r\n'

const get = (path: string, token: string) => `GET ${path} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${token}\r\n\r\n`

describe.concurrent('a server that ends', () => {
  test('is not ready during --drain-wait, takes new connections, and closes each after its answer', async () => {
    await using service = await serveDatabase(['--drain-wait', '1h', '--drain', '2h'])
    const { server, token } = service
    const ask = async (path: string) => {
      const { status, headers, isClosed } = await exchange(server.port, get(path, token))
      return [path, status, headers.get('connection'), isClosed]
    }
    // From here on the list is in the list cache.
    const before = await ask('/plants?limit=5')
    server.signal('SIGTERM')
    await until('the server is not ready', async () => (await ask('/readyz'))[1] === 503)

    expect(before).toEqual(['/plants?limit=5', 200, null, false])
    expect(await Promise.all(['/readyz', '/healthz', '/plants?limit=5'].map(ask))).toEqual([
      ['/readyz', 503, 'close', true],
      ['/healthz', 200, 'close', true],
      ['/plants?limit=5', 200, 'close', true],
    ])
  })

  test('cuts a list after --drain if its client stops reading, without the last chunk, and logs what was sent', async () => {
    await using service = await serveDatabase(['--drain', '1s'])
    const { server, token, database } = service
    addLongPlants(database)
    using reading = await requestAndWait(server.port, get('/plants', token))
    const exitCode = await server.end()
    const answer = await reading.readToEnd()
    const log = server.stdout().trim().split('\n')
    const { bytes } = log.map((line) => JSON.parse(line)).find(({ msg }) => msg === 'request') ?? {}

    expect(exitCode).toBe(0)
    expect(answer.slice(-LIST_END.length)).not.toBe(LIST_END)
    expect(log.join()).toContain('"requests were cut: they took longer than --drain"')
    expect(bytes).toBeWithin(LONG_PLANTS.nameLength, LONG_PLANTS.count * LONG_PLANTS.nameLength)
  })
})
