import { Database } from 'bun:sqlite'
import { describe, expect, test } from 'bun:test'
import { copyFileSync } from 'node:fs'
import { join } from 'node:path'
import { COMMAND, serve } from '../support/executable.ts'
import { makeFolder } from '../support/folder.ts'
import { startProgram } from '../support/program.ts'
import type { Random } from '../support/random.ts'
import { SLACK_MS } from '../support/slack.ts'
import { createTokenIn } from '../support/tokens.ts'
import { readSlowly, sendHalf, startNewcomers } from './clients.ts'
import { type Entry, requestIdOf, startHistory } from './history.ts'
import { startLoad } from './load.ts'
import { ROUNDS_TIMEOUT_MS, rounds, runRounds } from './rounds.ts'

/** Of the history's plants, above those of the long list. */
const FIRST_ID = 1_000_000
/** Together more than the buffers of a connection hold. */
const LIST_PLANTS = 2000
const NAME_LENGTH = 10_000
const READ_BYTES_PER_SECOND = 30_000_000

/** A signal comes after some number of answers below this. */
const ANSWERS_MAX = 2000
/** What --drain is by default. */
const DRAIN_MS = 8000
const SHORT_DRAIN_MS = 1000
const DRAIN_WAIT_MS = 2000
/** Before the end of --drain-wait, for what was sent last to arrive. */
const MARGIN_MS = 500
/** In order, and what a signal does before anybody listens for it. */
const ENDINGS: readonly unknown[] = [0, 'SIGTERM']

async function makeDatabase(folder: string) {
  const database = join(folder, 'plantstore.db')
  const token = await createTokenIn(database)
  const readerToken = await createTokenIn(database, 'reader')
  using db = new Database(database)
  db.run(
    `with recursive series (id) as (select 1 union all select id + 1 from series where id < ?1)
     insert into plants (user_id, id, name)
     select users.id, series.id, hex(zeroblob(?2)) from users, series where users.name = 'reader'`,
    [LIST_PLANTS, NAME_LENGTH / 2],
  )
  return { database, token, readerToken }
}

/** A server with 64 connections that create and delete, and others that are new for each request. */
async function serveLoad(folder: string, random: Random, flags: readonly string[] = []) {
  const { database, token, readerToken } = await makeDatabase(folder)
  const server = await serve(database, flags)
  const history = startHistory(FIRST_ID)
  const load = startLoad({ url: server.url, token, history, random })
  const newcomers = startNewcomers(server.port, token, history)
  const answered = () => [...load.statuses().values()].reduce((sum, count) => sum + count, 0)
  const answersBefore = 1 + random(ANSWERS_MAX)
  await until(() => answered() >= answersBefore && newcomers.answers.length > 0)
  return {
    database,
    token,
    readerToken,
    server,
    history,
    newcomers,
    stop: () => Promise.all([load.stop(), newcomers.stop()]),
    /** Creates and deletes that were answered whole. */
    wholeAnswers: () => answered() + newcomers.answers.length,
    [Symbol.asyncDispose]: server.kill,
  }
}

/** Of writes that no answer came to, those that a handler has begun, as the log or the database tells. */
function begunOf(entries: readonly Entry[], log: string, database: string): string[] {
  const logged = new Set([...log.matchAll(/"requestId":"([^"]+)"/g)].map(([, id]) => id))
  using db = new Database(database, { readonly: true })
  const select = db.prepare('select 1 from plants where id = ?1')
  const isDone = ({ kind, id }: Entry) => (select.get(id) !== null) === (kind === 'create')
  return entries.filter((entry) => logged.has(requestIdOf(entry)) || isDone(entry)).map(requestIdOf)
}

const afterSignal = (log: string): string => log.split('"ending"')[1] ?? ''

async function until(isSo: () => boolean): Promise<void> {
  while (!isSo()) await Bun.sleep(1)
}

describe('SIGTERM under load', () => {
  test(
    'lets every request be answered whole that a handler has begun, and ends the server with 0 within --drain',
    async () => {
      await runRounds(rounds(2, 40), async (random) => {
        using folder = makeFolder()
        await using under = await serveLoad(folder.path, random)
        const { server, history, database } = under
        using halfHead = await sendHalf(server.port, under.token, history, 'head')
        using halfBody = await sendHalf(server.port, under.token, history, 'body')
        const list = await readSlowly(server.port, under.readerToken, READ_BYTES_PER_SECOND)

        server.signal('SIGTERM')
        const signalMs = performance.now()
        await until(() => server.stdout().includes('"ending"'))
        const bytesBefore = list.bytes()
        const [body, head] = await Promise.all([halfBody.complete(), halfHead.complete()])
        const exitCode = await server.ended()
        const elapsedMs = performance.now() - signalMs
        await under.stop()

        history.check(database)
        const { acknowledged, refused, cutOff } = history.counts()
        // Of the half head nothing is promised, but that it is answered whole or not at all.
        const wholeAnswers = under.wholeAnswers() + (head === undefined ? 1 : 2)
        expect({ exitCode, body, refused }).toEqual({ exitCode: 0, body: 200, refused: 0 })
        expect(await list.plants()).toBe(LIST_PLANTS)
        expect(acknowledged).toBe(wholeAnswers)
        expect(begunOf(history.cutOff(), server.stdout(), database)).toEqual([])
        expect(elapsedMs).toBeLessThan(DRAIN_MS + SLACK_MS)
        expect(afterSignal(server.stdout())).not.toContain('requests were cut')
        // The signal came while all of them were at work.
        expect(bytesBefore).toBeLessThan(LIST_PLANTS * NAME_LENGTH)
        expect(afterSignal(server.stdout())).toContain('"msg":"request"')
        expect(cutOff).toBeGreaterThan(0)
      })
    },
    ROUNDS_TIMEOUT_MS,
  )

  test(
    'ends the server with 0 within --drain also where a half-sent request never becomes whole',
    async () => {
      await runRounds(rounds(1, 20), async (random) => {
        using folder = makeFolder()
        await using under = await serveLoad(folder.path, random, ['--drain', `${SHORT_DRAIN_MS / 1000}s`])
        const { server, history, database } = under
        using _halfHead = await sendHalf(server.port, under.token, history, 'head')
        using halfBody = await sendHalf(server.port, under.token, history, 'body')
        // The handler has begun once a later request is answered.
        await server.request('GET', '/healthz')

        server.signal('SIGTERM')
        const signalMs = performance.now()
        const exitCode = await server.ended()
        const elapsedMs = performance.now() - signalMs
        await under.stop()

        history.check(database)
        const cutOff = history.cutOff().filter((entry) => entry !== halfBody.entry)
        expect(exitCode).toBe(0)
        expect(elapsedMs).toBeLessThan(SHORT_DRAIN_MS + SLACK_MS)
        expect(begunOf(cutOff, server.stdout(), database)).toEqual([])
        expect(server.stdout()).toContain('requests were cut')
      })
    },
    ROUNDS_TIMEOUT_MS,
  )

  test(
    'loses no request and refuses no connection during --drain-wait, and every answer ends its connection',
    async () => {
      await runRounds(rounds(1, 20), async (random) => {
        using folder = makeFolder()
        await using under = await serveLoad(folder.path, random, ['--drain-wait', `${DRAIN_WAIT_MS / 1000}s`])
        const { server, history, newcomers } = under

        server.signal('SIGTERM')
        const signalMs = performance.now()
        await until(() => server.stdout().includes('"ending"'))
        const endingMs = performance.now()
        await until(() => performance.now() > signalMs + DRAIN_WAIT_MS - MARGIN_MS)
        await under.stop()
        const exitCode = await server.ended()

        history.check(under.database)
        const afterEnding = newcomers.answers.filter(({ sentMs }) => sentMs > endingMs)
        const { acknowledged, refused, cutOff } = history.counts()
        expect({ exitCode, refused, cutOff }).toEqual({ exitCode: 0, refused: 0, cutOff: 0 })
        expect(acknowledged).toBe(under.wholeAnswers())
        expect(afterEnding.length).toBeGreaterThan(0)
        expect(afterEnding.filter(({ isLast }) => !isLast)).toEqual([])
        expect(performance.now() - signalMs).toBeLessThan(DRAIN_MS + SLACK_MS)
      })
    },
    ROUNDS_TIMEOUT_MS,
  )
})

describe('SIGTERM while a server starts on what a killed one has left', () => {
  test(
    'ends it, and nothing acknowledged is missing',
    async () => {
      using folder = makeFolder()
      const left = await leaveBehind(folder.path)
      const startMs = await measureStart(left.copyTo('measured'))
      const starts = rounds(4, 60)
      let count = 0
      let signalledInStart = 0
      await runRounds(starts, async (random) => {
        const database = left.copyTo(`start-${count}`)
        const serving = ['serve', '--listen', '127.0.0.1:0', '--database', database]
        const { child, ended } = startProgram([...COMMAND, ...serving], { env: { PATH: process.env.PATH ?? '' } })
        // From early to late, so that some come in time however busy the machine is.
        await Bun.sleep((startMs * (count++ + random(100) / 100)) / starts)
        child.kill('SIGTERM')
        const signalledAtMs = Date.now()
        const { stdout, stderr } = await ended

        if (signalledAtMs < listeningAtMs(stdout)) signalledInStart += 1
        expect(stderr).toBe('')
        expect<unknown>(child.exitCode ?? child.signalCode).toBeOneOf(ENDINGS)
        expect(Date.now() - signalledAtMs).toBeLessThan(DRAIN_MS + SLACK_MS)
        left.history.check(database)
      })
      expect(signalledInStart).toBeGreaterThan(0)
    },
    ROUNDS_TIMEOUT_MS,
  )
})

/** What a server leaves that is killed under load: a database with a WAL that nobody has brought into it. */
async function leaveBehind(folder: string) {
  await using under = await serveLoad(folder, (bound) => bound - 1)
  await under.server.kill()
  await under.stop()
  return {
    history: under.history,
    /** Copies it, and returns the path of the copy. */
    copyTo(name: string): string {
      const copy = join(folder, `${name}.db`)
      for (const suffix of ['', '-wal']) copyFileSync(under.database + suffix, copy + suffix)
      return copy
    },
  }
}

/** When a server says that it listens; never, where it has not come so far. */
function listeningAtMs(log: string): number {
  const time = /"time":"([^"]+)".*"msg":"listening"/.exec(log)?.[1]
  return time === undefined ? Number.POSITIVE_INFINITY : Date.parse(time)
}

async function measureStart(database: string): Promise<number> {
  const startMs = performance.now()
  await using _server = await serve(database)
  return performance.now() - startMs
}
