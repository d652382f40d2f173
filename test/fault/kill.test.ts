import { Database } from 'bun:sqlite'
import { afterAll, describe, expect } from 'bun:test'
import { join } from 'node:path'
import { serve } from '../support/executable.ts'
import { makeFolder } from '../support/folder.ts'
import type { Random } from '../support/random.ts'
import { STRACE } from '../support/strace.ts'
import { largePlantOf, startHistory } from './history.ts'
import { testRounds } from './rounds.ts'
import { callsOfStart, killAt, pickCall, type SeenCall, traceCalls } from './system-calls.ts'
import { copyDatabase, expectRecovery, makeTestDatabase, QUIET, restart, type TestDatabase } from './test-database.ts'

const KILLS_PER_ROUND = 3
/** The most answers before a kill under load, and the most time after them. */
const MOMENT_MAX = { answers: 2000, laterMs: 50 }
/** Only checkpoints write pages of the database (the first one some fifty) and sync the database. */
const CHECKPOINT_CALLS = [
  { name: 'pwrite64', max: 200 },
  { name: 'fsync', max: 3 },
] as const
const kills = { 'under load': 0, 'in a checkpoint': 0, 'in a recovery': 0, 'in a migration': 0 }
afterAll(() => console.log(`kills ${JSON.stringify(kills)}`))

describe('the next server starts and has all that was acknowledged', () => {
  testRounds('after a kill under load', { short: 1, long: 50 }, async (random) => {
    using db = await makeTestDatabase({ random })
    for (let kill = 0; kill < KILLS_PER_ROUND; kill++) await killUnderLoad(db)
    await expectRecovery(db)
  })

  testRounds('after a kill in a checkpoint', { short: 2, long: 50, needs: [STRACE] }, async (random) => {
    using db = await makeTestDatabase({ random, history: startHistory(1, largePlantOf) })
    await killInCheckpoint(db)
    await expectRecovery(db)
  })

  testRounds(
    'after kills of starts that recover from a kill',
    { short: 1, long: 15, needs: [STRACE] },
    async (random) => {
      using db = await makeTestDatabase({ random })
      await killUnderLoad(db)
      const calls = await callsOfStart(db.database)
      for (let kill = 0; kill < KILLS_PER_ROUND; kill++) {
        await killStart(db.database, calls, random)
        db.checkCopy()
        kills['in a recovery']++
      }
      await expectRecovery(db)
    },
  )

  testRounds(
    'after a kill of the start that makes the database',
    { short: 3, long: 55, needs: [STRACE] },
    async (random) => {
      using empty = makeFolder()
      const calls = await callsOfStart(join(empty.path, 'plantstore.db'))
      using folder = makeFolder()
      const database = join(folder.path, 'plantstore.db')
      await killStart(database, calls, random)
      expectAllOrNothing(database)
      kills['in a migration']++
      await (await restart(database)).kill()
      await expectRecovery(await makeTestDatabase({ random, folder: folder.path }))
    },
  )
})

/** Kills servers under load until a kill has cut off a write. If all writes were answered just before, nothing can be lost. */
async function killUnderLoad(db: TestDatabase): Promise<void> {
  const unknownBefore = db.history.counts().unknown
  while (db.history.counts().unknown === unknownBefore) {
    await using server = await restart(db.database)
    const load = db.startLoad(server)
    await load.acknowledged(1 + db.random(MOMENT_MAX.answers))
    // Another process kills, because this one is busy just when the server waits for it.
    Bun.spawn(['sh', '-c', `sleep ${db.random(MOMENT_MAX.laterMs) / 1000} && kill -KILL ${server.pid}`])
    await server.ended()
    await load.stop()
    db.checkCopy()
  }
  kills['under load']++
}

/** Kills a server in a checkpoint. With a WAL nothing else writes to the database file (https://sqlite.org/wal.html). */
async function killInCheckpoint(db: TestDatabase): Promise<void> {
  const { name, max } = CHECKPOINT_CALLS[db.random(CHECKPOINT_CALLS.length)] ?? CHECKPOINT_CALLS[0]
  const when = 1 + db.random(max)
  using trace = traceCalls({ inject: killAt(name, when), files: [db.database] })
  await using server = await db.serve(QUIET, { under: trace.under })
  const load = db.startLoad(server)
  await server.ended()
  await load.stop()
  const seen = (await trace.seen()).calls.filter((call) => call.name === name)
  expect(seen).toHaveLength(when)
  expect(seen.at(-1)).toMatchObject({ path: db.database, isLast: true })
  db.checkCopy()
  kills['in a checkpoint']++
}

/** Kills a start at one of its calls. */
async function killStart(database: string, calls: readonly SeenCall[], random: Random): Promise<void> {
  const { name, when } = pickCall(calls, random)
  using trace = traceCalls({ inject: killAt(name, when) })
  await expect(serve(database, QUIET, { under: trace.under })).rejects.toThrow('did not listen')
  expect((await trace.seen()).calls.at(-1)).toMatchObject({ name, isLast: true })
}

/** A migration is one transaction: the database has none of its tables or all of them. */
function expectAllOrNothing(database: string): void {
  using copy = copyDatabase(database)
  using db = new Database(copy.database)
  const tables = db.prepare(
    "select name from sqlite_schema where type = 'table' and name not like 'sqlite_%' order by name",
  )
  expect(['', 'last_backup,plants,tokens,users']).toContain(tables.values().join())
  expect(db.prepare('pragma integrity_check').values()).toEqual([['ok']])
}
