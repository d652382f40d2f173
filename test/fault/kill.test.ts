import { Database } from 'bun:sqlite'
import { afterAll, describe, expect, test } from 'bun:test'
import { join } from 'node:path'
import { serve } from '../support/executable.ts'
import { makeFolder } from '../support/folder.ts'
import type { Random } from '../support/random.ts'
import { lacks } from '../support/requirement.ts'
import { STRACE } from '../support/strace.ts'
import { createTokenIn } from '../support/tokens.ts'
import { largePlantOf, startHistory } from './history.ts'
import { beginLife, callsOfStart, endInGoodOrder, judgeLeft, type Life } from './life.ts'
import { startLoad } from './load.ts'
import { copyDatabase, QUIET, restart } from './restart.ts'
import { ROUNDS_TIMEOUT_MS, rounds, runRounds } from './rounds.ts'
import { type CallName, type SeenCall, traceCalls } from './system-calls.ts'

const KILLS_PER_ROUND = 3
/** A random moment under load comes after up to so many answers, and then up to so much later. */
const MOMENT_MAX = { answers: 2000, laterMs: 50 }
/** Calls of checkpoints: of pages, of which the first checkpoint writes about fifty, and of syncs, of which each has one. */
const CHECKPOINT_CALLS = [
  { name: 'pwrite64', max: 200 },
  { name: 'fsync', max: 3 },
] as const
/** How many servers were killed when. */
const killed = { 'under load': 0, 'in a checkpoint': 0, 'in a recovery': 0, 'in a migration': 0 }
afterAll(() => console.log(`killed ${JSON.stringify(killed)}`))

describe('what was acknowledged is there, and the next server starts', () => {
  test(
    'after a kill under load',
    () =>
      runRounds(rounds(1, 50), async (random) => {
        using life = await beginLife(random)
        for (let kill = 0; kill < KILLS_PER_ROUND; kill++) await killUnderLoad(life)
        await endInGoodOrder(life)
      }),
    ROUNDS_TIMEOUT_MS,
  )

  test.skipIf(lacks(STRACE))(
    'after a kill in a checkpoint',
    () =>
      runRounds(rounds(2, 50), async (random) => {
        using life = await beginLife(random, startHistory(1, largePlantOf))
        await killInCheckpoint(life)
        await endInGoodOrder(life)
      }),
    ROUNDS_TIMEOUT_MS,
  )

  test.skipIf(lacks(STRACE))(
    'after kills of starts that recover what a kill has left',
    () =>
      runRounds(rounds(1, 15), async (random) => {
        using life = await beginLife(random)
        await killUnderLoad(life)
        const calls = await callsOfStart(life.database)
        for (let kill = 0; kill < KILLS_PER_ROUND; kill++) {
          await killStart(life.database, calls, random)
          judgeLeft(life)
          killed['in a recovery']++
        }
        await endInGoodOrder(life)
      }),
    ROUNDS_TIMEOUT_MS,
  )

  test.skipIf(lacks(STRACE))(
    'after a kill of the start that makes the database',
    async () => {
      using empty = makeFolder()
      const calls = await callsOfStart(join(empty.path, 'plantstore.db'))
      await runRounds(rounds(3, 55), async (random) => {
        using folder = makeFolder()
        const database = join(folder.path, 'plantstore.db')
        await killStart(database, calls, random)
        expectAllOrNothing(database)
        killed['in a migration']++
        await (await restart(database)).kill()
        await endInGoodOrder({ database, token: await createTokenIn(database), history: startHistory(), random })
      })
    },
    ROUNDS_TIMEOUT_MS,
  )
})

/** Kills a server at a random moment, while writes are under way. */
async function killUnderLoad(life: Life): Promise<void> {
  const cutOffBefore = life.history.counts().cutOff
  // All may have been answered together just before: then there was nothing to be lost, and another moment is tried.
  while (life.history.counts().cutOff === cutOffBefore) {
    await killAtAMoment(life)
    judgeLeft(life)
  }
  killed['under load']++
}

async function killAtAMoment(life: Life): Promise<void> {
  await using server = await restart(life.database)
  const load = startLoad({ ...life, url: server.url })
  await load.acknowledged(1 + life.random(MOMENT_MAX.answers))
  // By another process: this one is busy just when the server waits for it.
  Bun.spawn(['sh', '-c', `sleep ${life.random(MOMENT_MAX.laterMs) / 1000} && kill -KILL ${server.pid}`])
  await server.ended()
  await load.stop()
}

/** Kills a server in a checkpoint: with a WAL nothing else writes into the database itself (https://sqlite.org/wal.html). */
async function killInCheckpoint(life: Life): Promise<void> {
  const { name, max } = CHECKPOINT_CALLS[life.random(CHECKPOINT_CALLS.length)] ?? CHECKPOINT_CALLS[0]
  const when = 1 + life.random(max)
  using trace = traceCalls({ inject: killAt(name, when), files: [life.database] })
  await using server = await serve(life.database, QUIET, { under: trace.under })
  const load = startLoad({ ...life, url: server.url })
  await server.ended()
  await load.stop()
  const seen = (await trace.seen()).calls.filter((call) => call.name === name)
  expect(seen).toHaveLength(when)
  expect(seen.at(-1)).toMatchObject({ path: life.database, isLast: true })
  judgeLeft(life)
  killed['in a checkpoint']++
}

/** Kills a start at one of its calls. */
async function killStart(database: string, calls: readonly SeenCall[], random: Random): Promise<void> {
  const names = [...new Set(calls.map((call) => call.name))]
  const name = names[random(names.length)] ?? 'fsync'
  const when = 1 + random(calls.filter((call) => call.name === name).length)
  using trace = traceCalls({ inject: killAt(name, when) })
  await expect(serve(database, QUIET, { under: trace.under })).rejects.toThrow('did not listen')
  expect((await trace.seen()).calls.at(-1)).toMatchObject({ name, isLast: true })
}

const killAt = (name: CallName, when: number) => ({ calls: [name], fault: 'signal=SIGKILL', when: String(when) })

/** A migration is a transaction: there is no table of it, or all of them. */
function expectAllOrNothing(database: string): void {
  using copy = copyDatabase(database)
  using db = new Database(copy.database)
  const tables = db.prepare(
    "select name from sqlite_schema where type = 'table' and name not like 'sqlite_%' order by name",
  )
  const names = tables.values().join()
  expect(['', 'plants,tokens,users']).toContain(names)
  expect(db.prepare('pragma integrity_check').values()).toEqual([['ok']])
}
