import { Database } from 'bun:sqlite'
import { describe, expect, test } from 'bun:test'
import { join } from 'node:path'
import { serveDatabase } from '../cli/support/database.ts'
import { makeCertificate, OPENSSL } from '../support/certificates.ts'
import { makeFolder } from '../support/folder.ts'
import { addPlants } from '../support/many-plants.ts'
import { scrapeUntil } from '../support/metrics.ts'
import type { Random } from '../support/random.ts'
import { type Connection, formatRequest, openConnection } from '../support/raw-connection.ts'
import { lacks } from '../support/requirement.ts'
import { isBusy, SLACK_MS } from '../support/slack.ts'
import { createTokenIn } from '../support/tokens.ts'
import { until, untilEnded } from '../support/until.ts'
import { readSlowly, sendHalf } from './clients.ts'
import { isStoredBy, plantOf, readPlants, requestIdOf, SUCCESS, startHistory, type Write } from './history.ts'
import { rounds, testRounds } from './rounds.ts'
import { makeTestDatabase } from './test-database.ts'

/** The first id of the history, above the plants of the long list. */
const FIRST_ID = 1_000_000
/** Together more than the buffers of a connection hold. */
const LIST_PLANTS = 2000
const NAME_LENGTH = 10_000
const READ_BYTES_PER_SECOND = 30_000_000

/** The most answers before a signal. */
const ANSWERS_MAX = 2000
/** The default of --drain. */
const DRAIN_MS = 8000
const DRAIN_WAIT_MS = 2000
/** Before the end of --drain-wait, so that the last requests arrive. */
const MARGIN_MS = 500

/** A later answer proves that the handler of an earlier request has begun only if one thread answers both. */
const ONE_THREAD = ['--threads', '1']

/** A server with 64 connections that create and delete. */
async function serveLoad(random: Random, flags: readonly string[] = []) {
  const db = await makeTestDatabase({ random, history: startHistory(FIRST_ID) })
  const { database } = db
  const readerToken = await createTokenIn(database, 'reader')
  addPlants(database, LIST_PLANTS, { nameLength: NAME_LENGTH, user: 'reader' })
  const server = await db.serve(flags)
  /** Of each whole answer whether it ends its connection, and when its request was sent. */
  const answers: { readonly isLast: boolean; readonly sentAt: number }[] = []
  const load = db.startLoad(server, {
    onAnswer: ({ headers }, { sentAt }) => answers.push({ isLast: headers.get('connection') === 'close', sentAt }),
  })
  const answersBefore = 1 + random(ANSWERS_MAX)
  await until('the load has begun', (see) => see(answers).length >= answersBefore)
  return {
    ...db,
    readerToken,
    server,
    answers,
    stop: load.stop,
    async signal() {
      server.signal('SIGTERM')
      const signalMs = performance.now()
      await until('the server ends', (see) => see(server.stdout()).includes('"ending"'))
      return signalMs
    },
  }
}

/** Of unanswered writes, the ones that a handler has begun, as the log or the database shows. */
function begunOf(writes: readonly Write[], log: string, database: string): string[] {
  const logged = new Set([...log.matchAll(/"requestId":"([^"]+)"/g)].map(([, id]) => id))
  using db = new Database(database, { readonly: true })
  const rows = readPlants(db, 1)
  const isDone = (write: Write) => {
    const row = rows.get(write.id)
    return row === undefined ? write.kind === 'delete' : isStoredBy(write, row, plantOf(write.id))
  }
  return writes.filter((write) => logged.has(requestIdOf(write)) || isDone(write)).map(requestIdOf)
}

// test/fault/clock.test.ts has half-sent requests that never become whole.
describe('SIGTERM under load', () => {
  testRounds(
    'lets the server answer every request that a handler has begun, and end with 0 within --drain',
    { short: 2, long: 40 },
    async (random) => {
      await using under = await serveLoad(random, ONE_THREAD)
      const { server, history, token, database } = under
      using halves = new DisposableStack()
      const begin = async (part: 'head' | 'body', write: Write) =>
        halves.use(await sendHalf(server.port, token, history, part, write))
      const halfHead = await begin('head', random(2) === 0 ? history.create() : history.make())
      const writes = [history.create(), history.make(), history.replace(random) ?? history.make()]
      const halfBodies = await Promise.all(writes.map((write) => begin('body', write)))
      const list = await readSlowly(server.port, under.readerToken, READ_BYTES_PER_SECOND)

      const signalMs = await under.signal()
      const bytesBefore = list.bytes()
      const [head, ...bodies] = await Promise.all([halfHead, ...halfBodies].map(({ complete }) => complete()))
      const exitCode = await server.ended()
      const elapsedMs = performance.now() - signalMs
      await under.stop()

      under.check()
      const { acknowledged, refused, unknown } = history.counts()
      // The request with half a head is answered whole or not at all.
      const wholeAnswers = under.answers.length + writes.length + (head === undefined ? 0 : 1)
      const statuses = writes.map(({ kind }) => SUCCESS[kind])
      expect({ exitCode, bodies, refused }).toEqual({ exitCode: 0, bodies: statuses, refused: 0 })
      expect(await list.plants()).toBe(LIST_PLANTS)
      expect(acknowledged).toBe(wholeAnswers)
      const unanswered = history.writes().filter(({ outcome }) => outcome === 'unknown')
      expect(begunOf(unanswered, server.stdout(), database)).toEqual([])
      expect(elapsedMs).toBeLessThan(DRAIN_MS + SLACK_MS)
      const logAfter = server.stdout().split('"ending"')[1] ?? ''
      expect(logAfter).not.toContain('requests were cut')
      // The signal came while all clients were at work.
      expect(bytesBefore).toBeLessThan(LIST_PLANTS * NAME_LENGTH)
      expect(logAfter).toContain('"msg":"request"')
      expect(unknown).toBeGreaterThan(0)
    },
  )

  testRounds(
    'loses no request and refuses no connection during --drain-wait, and every answer ends its connection',
    { short: 1, long: 20 },
    async (random) => {
      await using under = await serveLoad(random, ['--drain-wait', `${DRAIN_WAIT_MS / 1000}s`])
      const { server, history, answers } = under

      const signalMs = await under.signal()
      const endingAt = history.now()
      await Bun.sleep(Math.max(0, signalMs + DRAIN_WAIT_MS - MARGIN_MS - performance.now()))
      await under.stop()
      const exitCode = await server.ended()

      under.check()
      // They end their connections, so the clients open new ones all the time.
      const afterEnding = answers.filter(({ sentAt }) => sentAt >= endingAt)
      const { acknowledged, ...others } = history.counts()
      expect({ exitCode, ...others }).toEqual({ exitCode: 0, refused: 0, unknown: 0 })
      expect(acknowledged).toBe(answers.length)
      expect(afterEnding.length).toBeGreaterThan(0)
      expect(afterEnding.filter(({ isLast }) => !isLast)).toEqual([])
      expect(performance.now() - signalMs).toBeLessThan(DRAIN_MS + SLACK_MS)
    },
  )
})

/** Far longer than the server may take to end. The runtime itself waits up to 12 seconds for an idle client. */
const LONG_DRAIN = '120s'
/** More than the answers that the runtime can nest in one turn, for each thread. Handshakes of TLS would take too long. */
const STRANGERS = rounds(3000, 6000)
const PUTS = 50
const DRIP_MS = 1000

/** A server without load, and connections to it. */
async function serveSlow({ isTls = false, isUnix = false, threads = 1 }) {
  const opened = new AsyncDisposableStack()
  const folder = opened.use(makeFolder())
  const flags = ['--threads', `${threads}`, '--drain', LONG_DRAIN, '--metrics-listen', '127.0.0.1:0']
  const { certPath, keyPath } = isTls ? await makeCertificate(folder.path, 'own') : {}
  if (certPath && keyPath) flags.push('--tls-cert', certPath, '--tls-key', keyPath)
  const ca = certPath && (await Bun.file(certPath).text())
  const socketPath = join(folder.path, 'socket')
  if (isUnix) flags.push('--listen', `unix:${socketPath}`)
  const service = opened.use(await serveDatabase(flags))
  const connect = () => openConnection(isUnix ? socketPath : service.server.port, { ca })
  return { ...service, connect, [Symbol.asyncDispose]: () => opened.disposeAsync() }
}

test.skipIf(lacks(OPENSSL)).each([
  ['plain HTTP', {}],
  ['TLS', { isTls: true }],
])(
  'SIGTERM of a server with %s waits for a slow reader of a list and for the body of a create, but for no idle client',
  async (_, place) => {
    await using service = await serveSlow(place)
    const { server, token, connect } = service
    addPlants(service.database, LIST_PLANTS, { nameLength: NAME_LENGTH })
    using idle = await connect()
    await idle.request(formatRequest('GET', '/healthz', ''))
    idle.pause()
    using reader = await connect()
    await reader.send(formatRequest('GET', '/plants', token))
    await reader.until(() => reader.text() !== '')
    reader.pause()
    using creating = await connect()
    const create = formatRequest('POST', '/plants', token, { id: FIRST_ID, name: 'Fern' })
    await creating.send(create.slice(0, -10))
    await scrapeUntil(server, (now) => now.plantstore_http_requests_in_flight === 2)

    server.signal('SIGTERM')
    await until('the server ends', (see) => see(server.stdout()).includes('"ending"'))
    const created = await creating.request(create.slice(-10))
    const list = await reader.readToEnd()
    const answeredMs = performance.now()

    expect(created).toMatchObject({ status: 200 })
    expect(list).toEndWith(']\r\n0\r\n\r\n')
    expect(await untilEnded(server)).toBe(0)
    expect(performance.now() - answeredMs).toBeLessThan(SLACK_MS)
    expect(server.stdout()).not.toContain('requests were cut')
  },
)

/** Both ways to send a body, in both of which a chunk can come next. */
const FORMS = ['Content-Length: 50000\r\n\r\n', 'Transfer-Encoding: chunked\r\n\r\n']
const CHUNK = '1\r\nx\r\n'

test.skipIf(lacks(OPENSSL)).each<readonly [string, Parameters<typeof serveSlow>[0], number]>([
  ['plain HTTP', {}, STRANGERS],
  ['three threads', { threads: 3 }, 3 * STRANGERS],
  ['a unix socket', { isUnix: true }, STRANGERS],
  ['TLS', { isTls: true }, 20],
])(
  'SIGTERM of a server with %s does not wait for bodies that no operation takes, answers each, and waits for those of puts',
  async (_, place, most) => {
    // A busy machine opens so few before the server gives up the first bodies.
    const count = isBusy() ? Math.min(most, PUTS) : most
    await using service = await serveSlow(place)
    const { server, token, connect } = service
    using held = new DisposableStack()
    const hold = async (part: string) => {
      // At a unix socket, the system refuses more than the server has yet to accept.
      const connection = held.use(await until('it connects', () => connect().catch(() => undefined)))
      await connection.send(part)
      return connection
    }
    const putting: Connection[] = []
    for (let id = 0; id < PUTS; id++)
      putting.push(await hold(formatRequest('PUT', `/plants/${id}`, token, { name: 'Fern' }).slice(0, -1)))
    const strangers: Connection[] = []
    const drips = setInterval(() => {
      for (const { send } of strangers) void send(CHUNK)
    }, DRIP_MS)
    held.defer(() => clearInterval(drips))
    for (let index = 0; index < count; index++)
      strangers.push(await hold(`POST /plants HTTP/1.1\r\nHost: a\r\n${FORMS[index % 2]}${CHUNK}`))
    // On a busy machine some strangers have stalled.
    const isWhole = (inFlight = 0) => inFlight === PUTS + count || (isBusy() && inFlight > PUTS)
    await scrapeUntil(server, (now) => isWhole(now.plantstore_http_requests_in_flight))

    server.signal('SIGTERM')

    const refused = /^HTTP\/1\.1 401 .*^connection: close\r$.*"error":40101/ims
    for (const { readToEnd } of strangers) expect(await readToEnd()).toMatch(refused)
    for (const { request } of putting) expect(await request('}')).toMatchObject({ status: 201 })
    expect(await untilEnded(server)).toBe(0)
    expect(server.stdout().split('"status":401')).toHaveLength(count + 1)
    expect(server.stdout()).not.toContain('requests were cut')
  },
)
