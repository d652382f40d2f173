import { describe, expect, test } from 'bun:test'
import { readdirSync } from 'node:fs'
import { dirname } from 'node:path'
import { type DatabaseKind, type EmptyDatabase, POSTGRES, SQLITE } from '../support/empty-databases.ts'
import { COMMAND, runPlantstore, serve } from '../support/executable.ts'
import { addPlants } from '../support/many-plants.ts'
import { POSTGRES_SERVER } from '../support/postgres.ts'
import { startProgram } from '../support/program.ts'
import { lacks } from '../support/requirement.ts'
import { STRACE } from '../support/strace.ts'
import { createTokenIn } from '../support/tokens.ts'
import { until } from '../support/until.ts'
import { ROUNDS_TIMEOUT_MS, rounds, runRounds } from './rounds.ts'
import { type Fault, killAt, traceCalls } from './system-calls.ts'

const PLANTS = 20_000
/** More plants than are copied before a signal comes. */
const MANY_PLANTS = rounds(150_000, 300_000)
const UNFINISHED =
  /exit code 3\nplantstore: The database [^\n]+ is a copy that is not finished: run plantstore copy again[^\n]+\n$/

describe.each([
  { from: SQLITE, to: SQLITE },
  { from: SQLITE, to: POSTGRES },
  { from: POSTGRES, to: SQLITE },
])('copy from $from.name to $to.name', ({ from, to }) => {
  test.skipIf((from === POSTGRES || to === POSTGRES) && lacks(POSTGRES_SERVER))(
    'that is killed leaves a whole copy or one that no server takes, and starts over',
    async () => {
      await using source = await makeSource(from)
      const content = await source.dump()
      const wholeMs = await timeCopy(source, to)
      /** Kills a copy this time after it has left something. Returns whether it was killed before its end. */
      const killCopy = async (afterMs: number) => {
        await using target = await to.make()
        const { child, ended } = await startCopy(source, target)
        await Promise.race([ended, Bun.sleep(afterMs)])
        child.kill('SIGKILL')
        await ended

        const outcome = await serveOnce(target)
        if (outcome !== 'served') {
          expect(outcome).toMatch(UNFINISHED)
          expect(await copy(source, target)).toMatchObject({ stdout: `${target.database}\n`, exitCode: 0 })
        }
        expect(await target.dump()).toEqual(content as never)
        if (to === SQLITE) expect(readdirSync(dirname(target.database))).toEqual(['plantstore.db'])
        return outcome !== 'served'
      }
      await runRounds(rounds(1, 40), async (random) => void (await killCopy(random(Math.round(wholeMs)))))
      // On a busy machine a copy may end before the kill.
      while (!(await killCopy(0)));
    },
    ROUNDS_TIMEOUT_MS,
  )
})

/** Copies to a new file, and fails there if told to. */
async function copyUnder(source: EmptyDatabase, inject?: Fault) {
  const target = await SQLITE.make()
  using trace = traceCalls({ ...(inject && { inject }), files: [target.database, `${target.database}-journal`] })
  await runPlantstore(argsOf(source, target), { under: trace.under })
  return { target, calls: (await trace.seen()).calls }
}

test.skipIf(lacks(STRACE))(
  'copy that is killed at one of its first writes of a file starts over',
  async () => {
    await using source = await makeSource(SQLITE, 6)
    for (let when = 1; when <= rounds(3, 9); when++) {
      const killed = await copyUnder(source, killAt('pwrite64', when))
      await using target = killed.target
      expect(killed.calls.at(-1)).toMatchObject({ name: 'pwrite64', isLast: true })

      expect(await copy(source, target)).toMatchObject({ exitCode: 0 })

      expect(await target.dump()).toEqual((await source.dump()) as never)
    }
  },
  ROUNDS_TIMEOUT_MS,
)

test.skipIf(lacks(STRACE))(
  'copy that is killed at one of its last writes of a file leaves a whole copy or one that no server takes',
  async () => {
    await using source = await makeSource(SQLITE, 6)
    const content = await source.dump()
    const whole = await copyUnder(source)
    await whole.target[Symbol.asyncDispose]()
    const outcomes = new Set<string>()
    for (const name of ['pwrite64', 'unlink'] as const) {
      const count = whole.calls.filter((call) => call.name === name).length
      for (let when = Math.max(1, count - rounds(3, 9)); when <= count; when++) {
        const killed = await copyUnder(source, killAt(name, when))
        await using target = killed.target
        expect(killed.calls.at(-1)).toMatchObject({ name, isLast: true })

        const outcome = await serveOnce(target)

        outcomes.add(outcome === 'served' ? 'served' : 'refused')
        if (outcome !== 'served') {
          expect(outcome).toMatch(UNFINISHED)
          expect(await copy(source, target)).toMatchObject({ exitCode: 0 })
        }
        expect(await target.dump()).toEqual(content as never)
      }
    }
    expect(outcomes).toContain('refused')
  },
  ROUNDS_TIMEOUT_MS,
)

test.each(['SIGTERM', 'SIGINT'] as const)(
  'copy that %s stops between two batches says so and starts over',
  async (signal) => {
    await using source = await makeSource(SQLITE, MANY_PLANTS)
    await using target = await SQLITE.make()
    const { child, ended } = await startCopy(source, target)
    child.kill(signal)
    const { stdout, stderr, exitCode } = await ended

    expect({ stdout, exitCode }).toEqual({ stdout: '', exitCode: signal === 'SIGINT' ? 130 : 143 })
    expect(stderr).toMatch(
      new RegExp(
        `^Stopped by ${signal}: (?:no plant is|\\d+ of ${MANY_PLANTS} plants are) (?:copied|verified)\\. No server takes the unfinished copy: run the same command again, which starts it over\\.\n$`,
        'm',
      ),
    )
    expect(readdirSync(dirname(target.database))).toEqual(['plantstore.db'])
    expect(await serveOnce(target)).toMatch(UNFINISHED)
    expect(await copy(source, target)).toMatchObject({ exitCode: 0 })
    expect(await target.dump()).toEqual((await source.dump()) as never)
  },
)

/** A store with plants of two users. */
async function makeSource(kind: DatabaseKind, plants = PLANTS): Promise<EmptyDatabase> {
  const made = await SQLITE.make()
  for (const user of ['me', 'you']) await createTokenIn(made.database, user)
  addPlants(made.database, plants / 2)
  if (kind === SQLITE) return made
  await using original = made
  const copied = await kind.make()
  expect(await copy(original, copied)).toMatchObject({ exitCode: 0 })
  return copied
}

const argsOf = (source: EmptyDatabase, target: EmptyDatabase) => [
  'copy',
  '--from',
  source.database,
  '--to',
  target.database,
]
const copy = (source: EmptyDatabase, target: EmptyDatabase) => runPlantstore(argsOf(source, target))

/** How long a copy takes that is not killed. */
async function timeCopy(source: EmptyDatabase, kind: DatabaseKind): Promise<number> {
  await using target = await kind.make()
  const begunMs = performance.now()
  expect(await copy(source, target)).toMatchObject({ exitCode: 0 })
  return performance.now() - begunMs
}

/** Starts a copy. Resolves when it has begun to fill its target, or has ended. */
async function startCopy(source: EmptyDatabase, target: EmptyDatabase) {
  const env = { PATH: process.env.PATH ?? '' }
  const { child, ended } = startProgram([...COMMAND, ...argsOf(source, target)], { env })
  await until('the copy fills its target', async () => child.exitCode !== null || (await target.isUnfinished()))
  return { child, ended }
}

/** Starts and ends a server on a store. Resolves to `served`, or to what a server says that does not start. */
async function serveOnce({ database }: EmptyDatabase): Promise<string> {
  const server = await serve(database).catch((error) => (error instanceof Error ? error.message : String(error)))
  if (typeof server === 'string') return server
  expect(await server.end()).toBe(0)
  return 'served'
}
