import { describe, expect, test } from 'bun:test'
import { LOCK_MAX_WAIT_MS } from '../../src/engine/group-queue.ts'
import { answerOf, codeOf } from '../cli/support/service-client.ts'
import { FAKETIME, makeClock } from '../support/clock.ts'
import { runPlantstore } from '../support/executable.ts'
import { scrapeUntil } from '../support/metrics.ts'
import { lacks } from '../support/requirement.ts'
import { SLACK_MS } from '../support/slack.ts'
import { until } from '../support/until.ts'
import { sendHalf } from './clients.ts'
import { holdTransaction } from './foreign-transaction.ts'
import { rounds } from './rounds.ts'
import { logLines } from './server-log.ts'
import { makeTestDatabase } from './test-database.ts'

const DAY_MS = 86_400_000
const MINUTE_MS = 60_000
/** Successes after each jump that show that writes go on. */
const ENOUGH = 100

/** Jumps by a day and back, in both directions. */
const JUMPS = Array.from({ length: rounds(1, 20) }, () => [1, 0, -1, 0]).flat()

/** A server with a clock of its own, and a token that does not expire. */
async function serveByClock(flags: readonly string[] = []) {
  const clock = makeClock()
  const db = await makeTestDatabase()
  const server = await db.serve(flags, { env: clock.env })
  return {
    ...db,
    ...server,
    startLoad: () => db.startLoad(server),
    jumpTo: (days: number) => clock.jumpTo(days * DAY_MS),
    /** By how many days the times in the log differ from the machine's clock. */
    daysAhead: () =>
      [...new Set(logLines(server).map(({ time }) => Math.round((Date.parse(time) - Date.now()) / DAY_MS) + 0))].sort(),
    async [Symbol.asyncDispose]() {
      await db[Symbol.asyncDispose]()
      clock.forget(server.pid)
      clock[Symbol.dispose]()
    },
  }
}

describe.skipIf(lacks(FAKETIME))('a clock that jumps by a day while a server runs', () => {
  test.concurrent('makes tokens expire and, when it jumps back, valid again; writes go on and take no longer', async () => {
    await using server = await serveByClock()
    const { token, history } = server
    const args = ['token', 'create', '--user', 'me', '--expires', '1h', '--database', server.database]
    const [known = '', unknown = ''] = [await runPlantstore(args), await runPlantstore(args)].map(({ stdout }) =>
      stdout.trim(),
    )
    const load = server.startLoad()
    expect(await codeOf(server, known)).toBe(200)

    for (const days of JUMPS) {
      server.jumpTo(days)
      const expected = days > 0 ? 40102 : 200
      expect([days, await codeOf(server, known), await codeOf(server, unknown)]).toEqual([days, expected, expected])
      expect([days, await codeOf(server, token)]).toEqual([days, 200])
      const { acknowledged } = history.counts()
      await until('plants are stored', (see) => see(history.counts()).acknowledged > acknowledged + ENOUGH)
    }
    await load.stop()
    expect(await server.end()).toBe(0)

    expect(history.counts()).toMatchObject({ refused: 0, unknown: 0 })
    server.check()
    expect(server.daysAhead()).toEqual([-1, 0, 1])
    const durationsMs = logLines(server).flatMap(({ durationMs }) => durationMs ?? [])
    expect(durationsMs.length).toBeGreaterThan(JUMPS.length * ENOUGH)
    expect(Math.min(...durationsMs)).toBeGreaterThanOrEqual(0)
    expect(Math.max(...durationsMs)).toBeLessThan(MINUTE_MS)
  })

  test.concurrent('does not change how long the server waits for a lock, nor the age of its readiness', async () => {
    await using server = await serveByClock()
    const readiness = () => answerOf(server.request('GET', '/readyz'))
    const create = async (id: number) => {
      const startMs = performance.now()
      const sent = server.request('POST', '/plants', { token: server.token, body: { id, name: 'Fern' } })
      return { ...(await answerOf(sent)), waitedMs: performance.now() - startMs }
    }
    expect(await readiness()).toMatchObject({ status: 200 })
    await using lock = await holdTransaction(server.database, 'begin exclusive')

    const creating: ReturnType<typeof create>[] = []
    for (const days of [1, 0, -1]) {
      creating.push(create(days))
      // Once a later request is answered, the server has begun the create.
      await server.request('GET', '/healthz')
      server.jumpTo(days)
    }
    await until('the server is not ready', async (see) => see(await readiness()).status === 503)
    for (const { status, body, waitedMs } of await Promise.all(creating)) {
      expect(status, body).toBe(503)
      expect(waitedMs).toBeWithin(LOCK_MAX_WAIT_MS / 2, LOCK_MAX_WAIT_MS + SLACK_MS)
    }
    await lock.release()
    await until('the server is ready', async (see) => see(await readiness()).status === 200)
    expect(server.daysAhead()).toEqual([-1, 0, 1])
  })

  test.concurrent.each([
    ['shorten --drain and --drain-wait, so that a request under way is answered', '20s', '5s', 1, 201],
    // Time enough for each thread to say what it cuts.
    ['lengthen --drain, after which half-sent requests are cut', '4s', '0s', -1, undefined],
  ])('does not %s', async (_, drain, drainWait, days, status) => {
    const flags = ['--drain', drain, '--drain-wait', drainWait, '--metrics-listen', '127.0.0.1:0']
    await using server = await serveByClock(flags)
    using half = await sendHalf(server.port, server.token, server.history, 'body', server.history.make())
    using _head =
      status === undefined
        ? await sendHalf(server.port, server.token, server.history, 'head', server.history.create())
        : undefined
    await scrapeUntil(server, (now) => now.plantstore_http_requests_in_flight === 1)
    const startMs = performance.now()
    server.signal('SIGTERM')
    await until('the server ends', (see) => see(server.stdout()).includes('"ending"'))

    server.jumpTo(days)

    if (status !== undefined) {
      // Now the server has used its new clock.
      await server.request('GET', '/healthz')
      expect(await half.complete()).toBe(status)
    }
    expect(await server.ended()).toBe(0)
    if (status === undefined) expect(performance.now() - startMs).toBeLessThan(4000 + SLACK_MS)
    const cut = expect.stringContaining('requests were cut')
    expect(server.stdout()).toEqual(status === undefined ? cut : expect.not.stringContaining('requests were cut'))
    expect(server.daysAhead()).toEqual([days, 0].sort())
    server.check()
  })
})
