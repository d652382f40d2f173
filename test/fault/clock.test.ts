import { describe, expect, test } from 'bun:test'
import { join } from 'node:path'
import { BUSY_TIMEOUT_MS } from '../../src/store/sqlite/connection.ts'
import { runPlantstore, serve } from '../support/executable.ts'
import { makeFolder } from '../support/folder.ts'
import { randomNumbers } from '../support/random.ts'
import { lacks } from '../support/requirement.ts'
import { SLACK_MS } from '../support/slack.ts'
import { sendHalf } from './clients.ts'
import { FAKETIME, makeClock } from './clock.ts'
import { holdTransaction } from './foreign-transaction.ts'
import { startHistory } from './history.ts'
import { startLoad } from './load.ts'
import { formatRequest, openConnection } from './raw-connection.ts'
import { rounds, testLong } from './rounds.ts'
import { until } from './watch.ts'

const DAY_MS = 86_400_000
const MINUTE_MS = 60_000
/** In which a request has to arrive; the runtime looks every four seconds. */
const ARRIVAL_LIMIT_MS = 30_000
const ARRIVAL_SLACK_MS = 4000 + SLACK_MS
/** Successes of the load that show, after each jump, that there are such. */
const ENOUGH = 100

/** Jumps by a day and back, either way. */
const JUMPS = Array.from({ length: rounds(1, 20) }, () => [1, 0, -1, 0]).flat()

/** A server with a clock of its own, and a token that does not expire. */
async function serveByClock(flags: readonly string[] = []) {
  const folder = makeFolder()
  const clock = makeClock()
  const database = join(folder.path, 'plantstore.db')
  const createToken = async (...options: readonly string[]) => {
    const { stdout } = await runPlantstore(['token', 'create', '--user', 'me', ...options, '--database', database])
    return stdout.trim()
  }
  const token = await createToken()
  const server = await serve(database, flags, { env: clock.env })
  const lines = () =>
    server
      .stdout()
      .split('\n')
      .filter((line) => line.startsWith('{'))
      .map((line) => JSON.parse(line))
  return {
    ...server,
    database,
    token,
    createToken,
    jumpTo: clock.jumpTo,
    /** The error of the answer to whoever shows a token, or 0 where it lets in. */
    async refusalOf(shown: string): Promise<number> {
      const answer = await server.request('GET', '/plants?limit=1', { token: shown })
      return answer.status === 200 ? 0 : JSON.parse(await answer.text()).error
    },
    /** When the token was used last, as far as that is known. */
    async lastUseMs(): Promise<number> {
      const { stdout } = await runPlantstore(['token', 'list', '--json', '--database', database])
      return Date.parse(JSON.parse(stdout)[0].lastUsed)
    },
    /** What the server has logged. */
    lines,
    /** How many days ahead of the machine its clock was, by what it has logged. */
    daysAhead: () =>
      [...new Set(lines().map(({ time }) => Math.round((Date.parse(time) - Date.now()) / DAY_MS) + 0))].sort(),
    async [Symbol.asyncDispose]() {
      await server.kill()
      clock.forget(server.pid)
      clock[Symbol.dispose]()
      folder[Symbol.dispose]()
    },
  }
}

describe.skipIf(lacks(FAKETIME))('a clock that jumps by a day while a server runs', () => {
  test.concurrent('lets tokens expire, and no longer when it has jumped back; all else goes on, and takes as long as it takes', async () => {
    await using server = await serveByClock()
    const { token, database } = server
    const [known, unknown] = [await server.createToken('--expires', '1h'), await server.createToken('--expires', '1h')]
    const history = startHistory()
    const load = startLoad({ url: server.url, token, history, random: randomNumbers(1) })
    expect(await server.refusalOf(known)).toBe(0)

    for (const days of JUMPS) {
      server.jumpTo(days)
      const expected = days > 0 ? 40102 : 0
      expect([days, await server.refusalOf(known), await server.refusalOf(unknown)]).toEqual([days, expected, expected])
      expect([days, await server.refusalOf(token)]).toEqual([days, 0])
      const { acknowledged } = history.counts()
      await until('plants are stored', () => history.counts().acknowledged > acknowledged + ENOUGH)
    }
    await load.stop()
    expect(await server.end()).toBe(0)

    expect(history.counts()).toMatchObject({ refused: 0, cutOff: 0 })
    history.check(database)
    expect(server.daysAhead()).toEqual([-1, 0, 1])
    const durationsMs = server.lines().flatMap(({ durationMs }) => durationMs ?? [])
    expect(durationsMs.length).toBeGreaterThan(JUMPS.length * ENOUGH)
    expect(Math.min(...durationsMs)).toBeGreaterThanOrEqual(0)
    expect(Math.max(...durationsMs)).toBeLessThan(MINUTE_MS)
  })

  test.concurrent('leaves what is known of the last use of a token within a minute of it', async () => {
    await using server = await serveByClock()
    for (const days of [0, 1, 0]) {
      server.jumpTo(days)
      expect(await server.refusalOf(server.token)).toBe(0)
    }

    expect(await server.end()).toBe(0)
    expect(server.daysAhead()).toEqual([0, 1])
    expect(Math.abs((await server.lastUseMs()) - Date.now())).toBeLessThan(MINUTE_MS + SLACK_MS)
  })

  test.concurrent('leaves the time for which a lock is waited, and the age of what is known of readiness', async () => {
    await using server = await serveByClock()
    const readiness = async () => (await server.request('GET', '/readyz')).status
    const create = async (id: number) => {
      const startMs = performance.now()
      const { status } = await server.request('POST', '/plants', { token: server.token, body: { id, name: 'Fern' } })
      return { status, waitedMs: performance.now() - startMs }
    }
    expect(await readiness()).toBe(200)
    await using lock = await holdTransaction(server.database, 'begin exclusive')

    const creating: ReturnType<typeof create>[] = []
    for (const days of [1, 0, -1]) {
      creating.push(create(days))
      // A later request is answered: the server has begun this one.
      await server.request('GET', '/healthz')
      server.jumpTo(days)
    }
    await until('the server is not ready', async () => (await readiness()) === 503)
    for (const { status, waitedMs } of await Promise.all(creating)) {
      expect(status).toBe(503)
      expect(waitedMs).toBeWithin(BUSY_TIMEOUT_MS / 2, BUSY_TIMEOUT_MS + SLACK_MS)
    }
    await lock.release()
    await until('the server is ready', async () => (await readiness()) === 200)
    expect(server.daysAhead()).toEqual([-1, 0, 1])
  })

  test.concurrent('leaves the time that a server has for its end, in which it cuts nothing', async () => {
    await using server = await serveByClock(['--drain', '20s', '--drain-wait', '5s'])
    const history = startHistory()
    using half = await sendHalf(server.port, server.token, history, 'body')
    await server.request('GET', '/healthz')
    server.signal('SIGTERM')
    await until('the server ends', () => server.stdout().includes('"ending"'))

    server.jumpTo(1)
    // The server has done something by its new clock.
    await server.request('GET', '/healthz')

    expect(await half.complete()).toBe(200)
    expect(await server.ended()).toBe(0)
    expect(server.daysAhead()).toEqual([0, 1])
    history.check(server.database)
  })

  test.concurrent('leaves the time after which a server that ends cuts what is not there', async () => {
    await using server = await serveByClock(['--drain', '1s'])
    using _half = await sendHalf(server.port, server.token, startHistory(), 'body')
    await server.request('GET', '/healthz')
    const startMs = performance.now()
    server.signal('SIGTERM')
    await until('the server ends', () => server.stdout().includes('"ending"'))

    server.jumpTo(-1)

    expect(await server.ended()).toBe(0)
    expect(performance.now() - startMs).toBeLessThan(1000 + SLACK_MS)
    expect(server.daysAhead()).toEqual([-1, 0])
    expect(server.stdout()).toContain('requests were cut')
  })

  testLong('leaves the time in which a request has to arrive, and how often the use of tokens is written', async () => {
    await using server = await serveByClock()
    using wire = await openConnection(server.port)
    wire.write(formatRequest('POST', '/plants', server.token, { id: 1, name: 'Fern' }).slice(0, -10))
    const startMs = performance.now()

    for (const days of [1, -1]) {
      server.jumpTo(days)
      expect(await server.refusalOf(server.token)).toBe(0)
      await until('the use of the token is written', async () => {
        const aheadMs = (await server.lastUseMs()) - Date.now()
        return Math.abs(aheadMs - days * DAY_MS) < MINUTE_MS
      })
    }
    await wire.ended

    expect(performance.now() - startMs).toBeWithin(ARRIVAL_LIMIT_MS / 2, ARRIVAL_LIMIT_MS + ARRIVAL_SLACK_MS)
  })
})
