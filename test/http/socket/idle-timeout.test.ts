import { describe, expect, test } from 'bun:test'
import { join } from 'node:path'
import { LOCK_MAX_WAIT_MS } from '../../../src/engine/group-queue.ts'
import { makeFolder } from '../../support/folder.ts'
import { isBusy, SLACK_MS } from '../../support/slack.ts'
import { addLongPlants, LONG_PLANTS } from '../../support/slow.ts'
import { until } from '../../support/until.ts'
import { type Service, startService } from '../support/service.ts'
import { SOCKET_TRANSPORTS, type Transport } from '../support/transports.ts'

/** The smallest value of the option. The runtime counts in steps of four seconds. */
const IDLE_TIMEOUT_MS = 5000
const SOONEST_MS = 4000
const LATEST_MS = 8000
/** The runtime's own limit for a head. */
const HEAD_LATEST_MS = 12_000
/** How often a slow client sends a byte. */
const DROP_MS = 500
/** How exactly timers are measured from outside. */
const EARLY_MS = 100

/** The end of a list that was sent whole, with its last chunk. */
const LIST_END = ']\r\n0\r\n\r\n'

const head = ({ token }: Service) => `Host: a\r\nAuthorization: Bearer ${token}\r\nContent-Type: application/json\r\n`

/** Sends bytes, and then nothing or a drop now and then. Returns how long the connection lasted, and what came on it. */
async function outlast({ connect }: Service, bytes: string, drop?: string) {
  const startMs = performance.now()
  using held = await connect()
  await held.send(bytes)
  const dripping = drop === undefined ? undefined : setInterval(() => void held.send(drop), DROP_MS)
  const answer = await held.readToEnd()
  clearInterval(dripping)
  return { ms: performance.now() - startMs, answer }
}

/** The same, until no pause between two drops lasted so long that the refusal came: a busy machine makes such pauses. */
const outlastSteadily = (service: Service, bytes: string, drop: string) =>
  until('the client sends steadily', async () => {
    const outlasted = await outlast(service, bytes, drop)
    return (outlasted.answer === '' || !isBusy()) && outlasted
  })

/** A service at a port, or at a unix socket, where the runtime ends no connection so early. */
async function startAt(transport: Transport, isUnix: boolean) {
  const folder = makeFolder()
  const socketPath = isUnix ? { socketPath: join(folder.path, 'socket') } : {}
  const service = await startService(transport, { idleTimeout: IDLE_TIMEOUT_MS, ...socketPath })
  return {
    ...service,
    async [Symbol.asyncDispose]() {
      await service[Symbol.asyncDispose]()
      folder[Symbol.dispose]()
    },
  }
}

const PLACES = SOCKET_TRANSPORTS.flatMap((transport) => [
  [transport.name, 'a port', transport, false] as const,
  [transport.name, 'a unix socket', transport, true] as const,
])

describe.concurrent.each(PLACES)('the idle timeout, %s, at %s', (_, __, transport, isUnix) => {
  test('cuts a request whose body does not arrive whole, also one that it refuses, logs 408, stores nothing, and ends a connection that is kept alive at a port', async () => {
    await using service = await startAt(transport, isUnix)
    const post = `POST /plants HTTP/1.1\r\n${head(service)}`
    const refused = post.replace(service.token, 'unknown')
    const part = `8000\r\n${'x'.repeat(0x8000)}\r\n`

    const [kept, ...cut] = await Promise.all([
      isUnix ? undefined : outlast(service, `GET /plants HTTP/1.1\r\n${head(service)}\r\n`),
      outlast(service, `${post}Content-Length: 22\r\n\r\n{"id":1,"name":"Fern"`),
      outlast(service, `${post}Content-Length: 2000\r\n\r\n{"id":1,"name":"`, 'x'),
      outlast(service, `${post}Transfer-Encoding: chunked\r\n\r\n15\r\n{"id":1,"name":"Fern"\r\n`),
      outlast(service, `${post}Transfer-Encoding: chunked\r\n\r\n1\r\n{\r\n`, '1\r\n \r\n'),
      outlastSteadily(service, `${post}Transfer-Encoding: chunked\r\n\r\n${part}`, part),
      outlastSteadily(service, `${refused}Content-Length: 2000\r\n\r\n`, 'x'),
      outlastSteadily(service, `${refused}Transfer-Encoding: chunked\r\n\r\n${part}`, part),
    ])

    if (kept) expect(kept.answer).toStartWith('HTTP/1.1 200 ')
    for (const { answer } of cut) expect(answer).toBe('')
    for (const { ms } of kept ? [kept, ...cut] : cut) {
      expect(ms).toBeGreaterThan(SOONEST_MS - EARLY_MS)
      expect(ms).toBeLessThan(LATEST_MS + SLACK_MS)
    }
    expect(await service.names()).toEqual([])
    // One that was not sent steadily was answered with 401 or 413, and sent again.
    const posts = () =>
      service.logLines().filter(({ method, status }) => method === 'POST' && status !== 401 && status !== 413)
    await until('all are logged', () => posts().length >= cut.length)
    expect(posts().map(({ status, bytes }) => [status, bytes])).toEqual(cut.map(() => [408, 0]))
  })

  test('does not hold for heads, which have a limit of their own: 12 seconds', async () => {
    await using service = await startAt(transport, isUnix)

    const cut = await Promise.all([
      outlast(service, ''),
      outlast(service, 'GET /plants HTTP/1.1\r\nHo'),
      outlast(service, 'GET /plants HTTP/1.1\r\nHost: ', 'a'),
    ])

    for (const { ms, answer } of cut) {
      expect(answer).toBe('')
      expect(ms).toBeLessThan(HEAD_LATEST_MS + SLACK_MS)
    }
  })

  test('does not cut a list whose client reads slowly', async () => {
    await using service = await startAt(transport, isUnix)
    addLongPlants(service.database)
    const request = async (path: string) => {
      const connection = await service.connect()
      await connection.send(`GET ${path} HTTP/1.1\r\n${head(service)}Connection: close\r\n\r\n`)
      await connection.until(() => connection.text() !== '')
      connection.pause()
      return connection
    }
    using streamed = await request('/plants')
    using capped = await request(`/plants?limit=${LONG_PLANTS.count}`)

    // The clients take nothing for longer than the idle timeout can last.
    for (let ms = 0; ms < LATEST_MS; )
      ms += (await outlast(service, `POST /plants HTTP/1.1\r\n${head(service)}Content-Length: 2000\r\n\r\n{`)).ms

    expect((await streamed.readToEnd()).slice(-LIST_END.length)).toBe(LIST_END)
    const [cappedHead = '', body] = (await capped.readToEnd()).split('\r\n\r\n')
    expect(cappedHead).toMatch(new RegExp(`^content-length: ${body?.length}$`, 'im'))
  })
})

// test/http/store-locked.test.ts proves how long a write waits for a lock.
test('the shortest idle timeout is longer than two waits for a lock', () => {
  expect(2 * LOCK_MAX_WAIT_MS).toBeLessThanOrEqual(SOONEST_MS)
})
