import { Database } from 'bun:sqlite'
import { describe, expect, test } from 'bun:test'
import { copyFileSync } from 'node:fs'
import { join } from 'node:path'
import { COMMAND, serve } from '../support/executable.ts'
import { addPlants } from '../support/many-plants.ts'
import { startProgram } from '../support/program.ts'
import { type Random, randomNumbers } from '../support/random.ts'
import { SLACK_MS } from '../support/slack.ts'
import { createTokenIn } from '../support/tokens.ts'
import { until } from '../support/until.ts'
import { readSlowly, sendHalf, startNewClients } from './clients.ts'
import { requestIdOf, startHistory, type Write } from './history.ts'
import { ROUNDS_TIMEOUT_MS, rounds, runRounds, testRounds } from './rounds.ts'
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
const SHORT_DRAIN_MS = 1000
const DRAIN_WAIT_MS = 2000
/** Before the end of --drain-wait, so that the last requests arrive. */
const MARGIN_MS = 500
/** The end of `serve`, and the ends by a signal that comes before the command or even the process listens for signals. */
const ENDINGS: readonly unknown[] = [0, 143, 'SIGTERM']

/** A later answer proves that the handler of an earlier request has begun only if one thread answers both. */
const ONE_THREAD = ['--threads', '1']

/** A server with 64 connections that create and delete, and clients that open a connection for each create. */
async function serveLoad(random: Random, flags: readonly string[] = []) {
  const db = await makeTestDatabase({ random, history: startHistory(FIRST_ID) })
  const { database, token, history } = db
  const readerToken = await createTokenIn(database, 'reader')
  addPlants(database, LIST_PLANTS, { nameLength: NAME_LENGTH, user: 'reader' })
  const server = await db.serve(flags)
  const load = db.startLoad(server)
  const newClients = startNewClients(server.port, token, history)
  const answersBefore = 1 + random(ANSWERS_MAX)
  await until('the load has begun', () => load.answers() >= answersBefore && newClients.answers.length > 0)
  return {
    ...db,
    readerToken,
    server,
    newClients,
    stop: () => Promise.all([load.stop(), newClients.stop()]),
    /** How many creates and deletes have a whole answer. */
    wholeAnswers: () => load.answers() + newClients.answers.length,
    async signal() {
      server.signal('SIGTERM')
      const signalMs = performance.now()
      await until('the server ends', () => server.stdout().includes('"ending"'))
      return signalMs
    },
  }
}

/** Of unanswered writes, the ones that a handler has begun, as the log or the database shows. */
function begunOf(writes: readonly Write[], log: string, database: string): string[] {
  const logged = new Set([...log.matchAll(/"requestId":"([^"]+)"/g)].map(([, id]) => id))
  using db = new Database(database, { readonly: true })
  const select = db.prepare('select 1 from plants where id = ?1')
  const isDone = ({ kind, id }: Write) => (select.get(id) !== null) === (kind === 'create')
  return writes.filter((write) => logged.has(requestIdOf(write)) || isDone(write)).map(requestIdOf)
}

describe('SIGTERM under load', () => {
  testRounds(
    'lets the server answer every request that a handler has begun, and end with 0 within --drain',
    { short: 2, long: 40 },
    async (random) => {
      await using under = await serveLoad(random, ONE_THREAD)
      const { server, history, token, database } = under
      using halfHead = await sendHalf(server.port, token, history, 'head')
      using halfBody = await sendHalf(server.port, token, history, 'body')
      const list = await readSlowly(server.port, under.readerToken, READ_BYTES_PER_SECOND)

      const signalMs = await under.signal()
      const bytesBefore = list.bytes()
      const [body, head] = await Promise.all([halfBody.complete(), halfHead.complete()])
      const exitCode = await server.ended()
      const elapsedMs = performance.now() - signalMs
      await under.stop()

      under.check()
      const { acknowledged, refused, unknown } = history.counts()
      // The request with half a head is answered whole or not at all.
      const wholeAnswers = under.wholeAnswers() + (head === undefined ? 1 : 2)
      expect({ exitCode, body, refused }).toEqual({ exitCode: 0, body: 200, refused: 0 })
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
    'lets the server end with 0 within --drain, also if half-sent requests never become whole',
    { short: 1, long: 20 },
    async (random) => {
      await using under = await serveLoad(random, [...ONE_THREAD, '--drain', `${SHORT_DRAIN_MS / 1000}s`])
      const { server, history, token } = under
      using _halfHead = await sendHalf(server.port, token, history, 'head')
      using halfBody = await sendHalf(server.port, token, history, 'body')
      // Once a later request is answered, the handler of the half body has begun.
      await server.request('GET', '/healthz')

      const signalMs = await under.signal()
      const exitCode = await server.ended()
      const elapsedMs = performance.now() - signalMs
      await under.stop()

      under.check()
      const unanswered = history.writes().filter((write) => write.outcome === 'unknown' && write !== halfBody.write)
      expect(exitCode).toBe(0)
      expect(elapsedMs).toBeLessThan(SHORT_DRAIN_MS + SLACK_MS)
      expect(begunOf(unanswered, server.stdout(), under.database)).toEqual([])
      expect(server.stdout()).toContain('requests were cut')
    },
  )

  testRounds(
    'loses no request and refuses no connection during --drain-wait, and every answer ends its connection',
    { short: 1, long: 20 },
    async (random) => {
      await using under = await serveLoad(random, ['--drain-wait', `${DRAIN_WAIT_MS / 1000}s`])
      const { server, history, newClients } = under

      const signalMs = await under.signal()
      const endingMs = performance.now()
      await Bun.sleep(Math.max(0, signalMs + DRAIN_WAIT_MS - MARGIN_MS - endingMs))
      await under.stop()
      const exitCode = await server.ended()

      under.check()
      const afterEnding = newClients.answers.filter(({ sentMs }) => sentMs > endingMs)
      const { acknowledged, ...others } = history.counts()
      expect({ exitCode, ...others }).toEqual({ exitCode: 0, refused: 0, unknown: 0 })
      expect(acknowledged).toBe(under.wholeAnswers())
      expect(afterEnding.length).toBeGreaterThan(0)
      expect(afterEnding.filter(({ isLast }) => !isLast)).toEqual([])
      expect(performance.now() - signalMs).toBeLessThan(DRAIN_MS + SLACK_MS)
    },
  )
})

test(
  'SIGTERM ends a server that recovers from a kill, and nothing acknowledged is missing',
  async () => {
    await using killed = await serveLoad(randomNumbers(1))
    await killed.server.kill()
    await killed.stop()
    /** Copies the database with the WAL that no checkpoint has moved into it. */
    const copyTo = (name: string) => {
      const copy = join(killed.folder, `${name}.db`)
      for (const suffix of ['', '-wal']) copyFileSync(killed.database + suffix, copy + suffix)
      return copy
    }
    const startMs = await measureStart(copyTo('measured'))
    const starts = rounds(4, 60)
    let count = 0
    let signalledInStart = 0
    await runRounds(starts, async (random) => {
      const database = copyTo(`start-${count}`)
      const serving = ['serve', '--listen', '127.0.0.1:0', '--database', database]
      const { child, ended } = startProgram([...COMMAND, ...serving], { env: { PATH: process.env.PATH ?? '' } })
      // From early to late, so that some signals come in time however busy the machine is.
      await Bun.sleep((startMs * (count++ + random(100) / 100)) / starts)
      child.kill('SIGTERM')
      const signalledAtMs = Date.now()
      const { stdout, stderr } = await ended

      if (signalledAtMs < listeningAtMs(stdout)) signalledInStart += 1
      expect(stderr).toBe('')
      expect<unknown>(child.exitCode ?? child.signalCode).toBeOneOf(ENDINGS)
      expect(Date.now() - signalledAtMs).toBeLessThan(DRAIN_MS + SLACK_MS)
      killed.history.check(database)
    })
    expect(signalledInStart).toBeGreaterThan(0)
  },
  ROUNDS_TIMEOUT_MS,
)

/** When a server logged that it listens; never, if it did not. */
function listeningAtMs(log: string): number {
  const time = /"time":"([^"]+)".*"msg":"listening"/.exec(log)?.[1]
  return time === undefined ? Number.POSITIVE_INFINITY : Date.parse(time)
}

async function measureStart(database: string): Promise<number> {
  const startMs = performance.now()
  await using _server = await serve(database)
  return performance.now() - startMs
}
