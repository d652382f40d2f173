import { expect } from 'bun:test'
import { SLACK_MS } from '../support/slack.ts'
import { until } from '../support/until.ts'
import { holdTransaction } from './foreign-transaction.ts'
import { BUSY_REFUSAL } from './history.ts'
import { sendWrite } from './load.ts'
import { repeatLists } from './repeated-requests.ts'
import { rounds, testRounds } from './rounds.ts'
import { makeTestDatabase } from './test-database.ts'

const HOLD_MS = rounds(1000, 30_000)
/** The promise. */
const REFUSAL_LIMIT_MS = 5000
/** Creates that are timed at once, besides the creates of the load. */
const TIMED = 8
/** Lists between a create and its answer, and successes, that show that lists and writes go on. */
const ENOUGH_LISTS = 20
const ENOUGH_WRITES = 200

const BUSY = {
  error: 50303,
  message: 'The server is too busy or shutting down, nothing was and nothing will be stored: try again.',
}

testRounds(
  'a server refuses writes in time while another process holds a lock, goes on with lists, and stores nothing refused',
  { short: 1, long: 4 },
  async (random) => {
    using db = await makeTestDatabase({ random })
    const { history } = db
    const stored = () => history.counts().acknowledged
    await using server = await db.serve()
    const lists = repeatLists(server, db.token)
    const load = db.startLoad(server)
    await until('plants are stored', () => stored() >= ENOUGH_WRITES)

    /** Sends creates while the lock is held. Each must be refused in time, and lists must be answered meanwhile. */
    const expectRefusals = async () => {
      const listed = lists.count()
      const timed = Array.from({ length: TIMED }, async () => {
        const beginMs = performance.now()
        const { body } = await sendWrite({ ...db, url: server.url }, history.create())
        return { isLate: performance.now() - beginMs > REFUSAL_LIMIT_MS + SLACK_MS, body: JSON.parse(body) }
      })
      expect(await Promise.all(timed)).toEqual(timed.map(() => ({ isLate: false, body: BUSY })))
      expect(lists.count()).toBeGreaterThan(listed + ENOUGH_LISTS)
    }

    await using holder = await holdTransaction(db.database, 'begin exclusive')
    const endMs = performance.now() + HOLD_MS
    const readiness = server.request('GET', '/readyz')
    await expectRefusals()
    // What was written before the lock has been answered by now.
    const storedBefore = stored()
    while (performance.now() < endMs) await expectRefusals()
    const notReady = await readiness
    expect([notReady.status, await notReady.json()]).toEqual([503, BUSY])
    expect((await server.request('GET', '/healthz')).status).toBe(200)
    expect(stored()).toBe(storedBefore)
    await holder.release()

    await until('plants are stored again', () => stored() > storedBefore + ENOUGH_WRITES)
    await until('the server is ready again', async () => (await server.request('GET', '/readyz')).status === 200)
    expect(await lists.stop()).toEqual([200])
    await load.stop()
    expect(history.refusals()).toEqual([BUSY_REFUSAL])
    expect(history.counts().unknown).toBe(0)
    expect(await server.end()).toBe(0)
    expect(server.stderr()).toBe('')
    db.check()
  },
)
