import { Database } from 'bun:sqlite'
import { describe, expect, test } from 'bun:test'
import { serveDatabase } from '../cli/support/database.ts'
import { makeCertificate, OPENSSL } from '../support/certificates.ts'
import { makeFolder } from '../support/folder.ts'
import { addPlants } from '../support/many-plants.ts'
import { formatRequest } from '../support/paced-requests.ts'
import type { Random } from '../support/random.ts'
import { openConnection } from '../support/raw-connection.ts'
import { lacks } from '../support/requirement.ts'
import { SLACK_MS } from '../support/slack.ts'
import { createTokenIn } from '../support/tokens.ts'
import { until, untilEnded } from '../support/until.ts'
import { readSlowly, sendHalf } from './clients.ts'
import { isStoredBy, plantOf, readPlants, requestIdOf, SUCCESS, startHistory, type Write } from './history.ts'
import { testRounds } from './rounds.ts'
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
const STRANGERS = 20
const DRIP_MS = 200

/** A server without load, and connections to it. */
async function serveSlow(isTls: boolean) {
  const folder = makeFolder()
  const { certPath, keyPath } = isTls ? await makeCertificate(folder.path, 'own') : {}
  const tls = certPath && keyPath ? ['--tls-cert', certPath, '--tls-key', keyPath] : []
  const ca = certPath && (await Bun.file(certPath).text())
  const service = await serveDatabase([...ONE_THREAD, '--drain', LONG_DRAIN, ...tls])
  const connect = () => openConnection(service.server.port, { ca })
  return {
    ...service,
    connect,
    /** Sends SIGTERM after the server has begun all requests that were sent before. */
    async signal() {
      using connection = await connect()
      await connection.request(formatRequest('GET', '/healthz', ''))
      service.server.signal('SIGTERM')
    },
    async [Symbol.asyncDispose]() {
      await service[Symbol.asyncDispose]()
      folder[Symbol.dispose]()
    },
  }
}

describe.skipIf(lacks(OPENSSL)).each([
  ['plain HTTP', false],
  ['TLS', true],
])('SIGTERM of a server with %s', (_, isTls) => {
  test('waits for a slow reader of a list and for the body of a create, but for no idle client', async () => {
    await using service = await serveSlow(isTls)
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

    await service.signal()
    await until('the server ends', (see) => see(server.stdout()).includes('"ending"'))
    const created = await creating.request(create.slice(-10))
    const list = await reader.readToEnd()
    const answeredMs = performance.now()

    expect(created).toMatchObject({ status: 200 })
    expect(list).toEndWith(']\r\n0\r\n\r\n')
    expect(await untilEnded(server)).toBe(0)
    expect(performance.now() - answeredMs).toBeLessThan(SLACK_MS)
    expect(server.stdout()).not.toContain('requests were cut')
  })

  test('does not wait for bodies that no operation takes', async () => {
    await using service = await serveSlow(isTls)
    const { server, connect } = service
    const strangers = await Promise.all(
      Array.from({ length: STRANGERS }, async (_, index) => {
        const stranger = await connect()
        await stranger.send(
          formatRequest('POST', '/plants', 'unknown', 'x'.repeat(5000), `X-Request-Id: s${index}\r\n`).slice(0, -4000),
        )
        const timer = setInterval(() => void stranger.send('x'), DRIP_MS)
        void stranger.ended.then(() => clearInterval(timer))
        return stranger
      }),
    )
    await until('all are refused', (see) => see(server.stdout()).split('"status":401').length > STRANGERS)
    const before = strangers.map(({ text }) => text())

    await service.signal()
    await Promise.all(strangers.map(({ ended }) => ended))

    expect(before.join('')).toBe('')
    for (const { text } of strangers) expect(text()).toMatch(/^HTTP\/1.1 401 .*^connection: close\r$.*"error":40102/ims)
    expect(await untilEnded(server)).toBe(0)
    expect(server.stdout()).not.toContain('requests were cut')
  })
})
