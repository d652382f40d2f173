import { afterAll, describe, expect } from 'bun:test'
import { serve } from '../support/executable.ts'
import { STRACE } from '../support/strace.ts'
import { until } from '../support/until.ts'
import { testRounds } from './rounds.ts'
import { callsOfStart, traceCalls } from './system-calls.ts'
import { expectRecovery, makeTestDatabase, QUIET, restart, type TestDatabase } from './test-database.ts'

const KILLS_PER_ROUND = 3
/** The most answers before a kill under load, and the most time after them. */
const MOMENT_MAX = { answers: 2000, laterMs: 50 }
const kills = { 'under load': 0, 'in a recovery': 0 }
afterAll(() => console.log(`kills ${JSON.stringify(kills)}`))

// test/fault/power-loss.test.ts has what a kill leaves between any two calls of a checkpoint and of a first start.
describe('the next server starts and has all that was acknowledged', () => {
  testRounds('after a kill under load', { short: 1, long: 50 }, async (random) => {
    using db = await makeTestDatabase({ random })
    for (let kill = 0; kill < KILLS_PER_ROUND; kill++) await killUnderLoad(db)
    await expectRecovery(db)
  })

  testRounds('after kills of starts that recover from one', { short: 1, long: 15, needs: [STRACE] }, async (random) => {
    using db = await makeTestDatabase({ random })
    await killUnderLoad(db)
    const calls = await callsOfStart(db.database)
    for (let kill = 0; kill < KILLS_PER_ROUND; kill++) {
      const names = [...new Set(calls.map((call) => call.name))]
      const name = names[random(names.length)]
      const when = 1 + random(calls.filter((call) => call.name === name).length)
      using trace = traceCalls({ inject: `${name}:signal=SIGKILL:when=${when}` })
      await expect(serve(db.database, QUIET, { under: trace.under })).rejects.toThrow('did not listen')
      expect((await trace.seen()).calls.at(-1)).toMatchObject({ name, isLast: true })
      db.checkCopy()
      kills['in a recovery']++
    }
    await expectRecovery(db)
  })
})

/** Kills servers under load until a kill has cut off a write. If all writes were answered just before, nothing can be lost. */
async function killUnderLoad(db: TestDatabase): Promise<void> {
  const unknownBefore = db.history.counts().unknown
  await until('a kill cuts off a write', async () => {
    await using server = await restart(db.database)
    const load = db.startLoad(server)
    await load.acknowledged(1 + db.random(MOMENT_MAX.answers))
    // Another process kills, because this one is busy just when the server waits for it.
    Bun.spawn(['sh', '-c', `sleep ${db.random(MOMENT_MAX.laterMs) / 1000} && kill -KILL ${server.pid}`])
    await server.ended()
    await load.stop()
    db.checkCopy()
    return db.history.counts().unknown !== unknownBefore
  })
  kills['under load']++
}
