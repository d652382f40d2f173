import { describe, expect, test } from 'bun:test'
import { existsSync } from 'node:fs'
import { COMMAND, runPlantstore, serve } from '../support/executable.ts'
import { startProgram } from '../support/program.ts'
import { exchange } from '../support/raw-connection.ts'
import { SLACK_MS } from '../support/slack.ts'
import { addLongPlants, LONG_PLANTS, requestAndWait, sendHalf } from '../support/slow.ts'
import { storedPlants } from '../support/stored.ts'
import { createTokenIn } from '../support/tokens.ts'
import { until } from '../support/until.ts'
import { makeDatabase, serveDatabase } from './support/database.ts'

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
    using _part = sendHalf(server.port, halfBody(token))
    await server.request('GET', '/plants', { token })
    server.signal('SIGTERM')
    await until('the server is ending', () => server.stdout().includes('"ending"'))
    const startMs = performance.now()
    server.signal('SIGTERM')

    expect(await server.ended()).toBe(TERMINATED)
    expect(performance.now() - startMs).toBeLessThan(SLACK_MS)
    expect(await runPlantstore(['check', '--database', database])).toMatchObject({ exitCode: 0 })
  })

  test.each([0, 10, 20, 40, 80, 160])(
    'ends a server %d ms after its start, and leaves a usable database',
    async (delayMs) => {
      using made = makeDatabase()
      const { database } = made
      const args = ['serve', '--listen', '127.0.0.1:0', '--database', database]
      const env = { PATH: process.env.PATH ?? '' }
      const { child, ended } = startProgram([...COMMAND, ...args], { env })
      await Bun.sleep(delayMs)
      child.kill('SIGTERM')
      const { stderr } = await ended

      expect([0, TERMINATED]).toContain(child.exitCode ?? (child.signalCode === 'SIGTERM' ? TERMINATED : -1))
      expect(stderr).toBe('')
      await createTokenIn(database)
      expect(await made.run('check')).toMatchObject({ exitCode: 0 })
    },
  )
})

const DRAIN_WAIT_MS = 4000
/** The end of a list that was sent whole, with its last chunk. */
const LIST_END = ']\r\n0\r\n\r\n'

const get = (path: string, token: string) =>
  `GET ${path} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${token}\r\nConnection: close\r\n\r\n`

// Alone: what a concurrent test writes to disk holds this process up, and the requests must come within the wait.
describe('a server that ends with --drain-wait', () => {
  test('takes new connections that long, closes each after its answer, is not ready, and then takes none', async () => {
    await using service = await serveDatabase(['--drain-wait', '4s'])
    const { server, token } = service
    const keepAlive = (path: string) => get(path, token).replace('Connection: close\r\n', '')
    // From here on the list is in the list cache.
    const before = await exchange(server.port, keepAlive('/plants?limit=5'))
    const startMs = performance.now()
    server.signal('SIGTERM')
    const isReady = async () => (await exchange(server.port, keepAlive('/readyz'))).status === 200
    await until('the server is not ready', async () => !(await isReady()))
    const [readyz, healthz, list] = await Promise.all([
      exchange(server.port, keepAlive('/readyz')),
      exchange(server.port, keepAlive('/healthz')),
      exchange(server.port, keepAlive('/plants?limit=5')),
    ])
    const refused = await until('the server refuses connections', () =>
      exchange(server.port, keepAlive('/healthz')).then(
        () => undefined,
        ({ code }) => String(code),
      ),
    )
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
    // A connection that was not accepted any more is reset.
    expect(['ECONNREFUSED', 'ECONNRESET']).toContain(refused)
    expect(refusedMs).toBeGreaterThanOrEqual(DRAIN_WAIT_MS)
    expect(await server.ended()).toBe(0)
  })
})

describe.concurrent('a server that ends', () => {
  test('answers a slow client the whole list', async () => {
    await using service = await serveDatabase()
    const { server, token, database } = service
    addLongPlants(database)
    const reading = await requestAndWait(server.port, get('/plants', token))
    server.signal('SIGTERM')
    await until('the server is ending', () => server.stdout().includes('"ending"'))
    const answer = await reading.readOn()

    expect(answer.slice(0, 15)).toBe('HTTP/1.1 200 OK')
    expect(answer.slice(-LIST_END.length)).toBe(LIST_END)
    expect(answer.match(/"name"/g)).toHaveLength(LONG_PLANTS.count)
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
    expect(answer.slice(-LIST_END.length)).not.toBe(LIST_END)
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
    await until('the server is ending', () => server.stdout().includes('"ending"'))
    const answer = await creating.sendRest(body.slice(10))

    expect(answer).toStartWith('HTTP/1.1 200 OK\r\n')
    expect(answer).toEndWith('{"name":"Fern"}')
    expect(await server.ended()).toBe(0)
    expect(await storedPlants(database)).toEqual([{ user_id: 1n, id: 1n, name: 'Fern' }])
  })
})
