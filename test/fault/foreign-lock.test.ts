import { expect, test } from 'bun:test'
import { join } from 'node:path'
import { serve } from '../support/executable.ts'
import { makeFolder } from '../support/folder.ts'
import type { Random } from '../support/random.ts'
import { SLACK_MS } from '../support/slack.ts'
import { createTokenIn } from '../support/tokens.ts'
import { holdTransaction } from './foreign-transaction.ts'
import { type History, startHistory } from './history.ts'
import { startLoad } from './load.ts'
import { ROUNDS_TIMEOUT_MS, rounds, runRounds } from './rounds.ts'
import { countAnswers, until, watchLists } from './watch.ts'

const HOLD_MS = rounds(6000, 30_000)
/** The promise. */
const REFUSAL_LIMIT_MS = 5000
/** Creates that are watched at once, besides those of the load. */
const WATCHED = 8
/** Lists that show, between a create and its answer, that they go on; and successes that show that there are such. */
const ENOUGH = 20
const ENOUGH_WRITES = 200

const BUSY = {
  error: 50303,
  message: 'The server is too busy or shutting down, nothing was and nothing will be stored: try again.',
}

test(
  'a lock that another process holds has writes refused in time while lists go on, and nothing of them stored later',
  () => runRounds(rounds(1, 4), (random) => lockUnderLoad(random)),
  ROUNDS_TIMEOUT_MS,
)

/** Has somebody else lock the database of a server under load, and end the lock in one way or another. */
async function lockUnderLoad(random: Random): Promise<void> {
  using folder = makeFolder()
  const database = join(folder.path, 'plantstore.db')
  const token = await createTokenIn(database)
  const history = startHistory()
  const answers = countAnswers()
  await using server = await serve(database, ['--access-log', 'off'])
  const lists = watchLists(server, token)
  const load = startLoad({ url: server.url, token, history, random, onAnswer: answers.record })
  await until('plants are stored', () => answers.successes() >= ENOUGH_WRITES)

  await using holder = await holdTransaction(database, 'begin exclusive')
  const endMs = performance.now() + HOLD_MS
  const readiness = server.request('GET', '/readyz')
  await watchCreates()
  // What was written before the lock is answered by now.
  const stored = answers.successes()
  while (performance.now() < endMs) await watchCreates()
  const notReady = await readiness
  expect([notReady.status, await notReady.json()]).toEqual([503, BUSY])
  expect((await server.request('GET', '/healthz')).status).toBe(200)
  expect(answers.successes()).toBe(stored)
  await (random(2) === 0 ? holder.release() : holder.kill())

  await until('plants are stored again', () => answers.successes() > stored + ENOUGH_WRITES)
  await until('the server is ready again', async () => (await server.request('GET', '/readyz')).status === 200)
  expect(await lists.stop()).toEqual([200])
  await load.stop()
  expect(answers.refusals()).toEqual(['503 50303, Retry-After: 1'])
  expect(history.counts().cutOff).toBe(0)
  expect(await server.end()).toBe(0)
  expect(server.stderr()).toBe('')
  history.check(database)

  /** Sends creates while the lock is held. Throws unless each is refused in time, and lists are answered before. */
  async function watchCreates(): Promise<void> {
    const listed = lists.count()
    const seen = await Promise.all(Array.from({ length: WATCHED }, () => create(history, server, token)))
    const late = seen.filter(({ waitedMs }) => waitedMs > REFUSAL_LIMIT_MS + SLACK_MS)
    expect(late).toEqual([])
    expect(seen.map(({ body }) => body)).toEqual(seen.map(() => BUSY))
    expect(lists.count()).toBeGreaterThan(listed + ENOUGH)
  }
}

/** Creates a plant. Resolves to the answer and to how long it took to come. */
async function create(history: History, server: Awaited<ReturnType<typeof serve>>, token: string) {
  const entry = history.create()
  const sentMs = performance.now()
  const response = await server.request('POST', '/plants', { token, body: history.plantOf(entry.id) })
  const waitedMs = performance.now() - sentMs
  const text = await response.text()
  history.record(entry, response.status, text)
  return { waitedMs, body: JSON.parse(text) }
}
