import { describe, expect, test } from 'bun:test'
import { readdirSync } from 'node:fs'
import { dirname } from 'node:path'
import { type DatabaseKind, type EmptyDatabase, POSTGRES, SQLITE } from '../support/empty-databases.ts'
import { COMMAND, runPlantstore } from '../support/executable.ts'
import { addPlants } from '../support/many-plants.ts'
import { POSTGRES_SERVER } from '../support/postgres.ts'
import { startProgram } from '../support/program.ts'
import { lacks } from '../support/requirement.ts'
import { STRACE } from '../support/strace.ts'
import { createTokenIn } from '../support/tokens.ts'
import { until } from '../support/until.ts'
import { ROUNDS_TIMEOUT_MS, rounds, runRounds, testRounds } from './rounds.ts'
import { type Fault, killAt, pickCall, traceCalls } from './system-calls.ts'

const PLANTS = 20_000
/** More plants than are copied before a signal comes. */
const MANY_PLANTS = rounds(150_000, 300_000)
/** The calls of a copy at which it is killed. The last one syncs the folder after the link. */
const KILLED_AT = ['pwrite64', 'fsync', 'link'] as const

describe.each([
  { from: SQLITE, to: SQLITE },
  { from: SQLITE, to: POSTGRES },
  { from: POSTGRES, to: SQLITE },
])('copy from $from.name to $to.name', ({ from, to }) => {
  test.skipIf((from === POSTGRES || to === POSTGRES) && lacks(POSTGRES_SERVER))(
    'that is killed leaves a whole copy or nothing, and is repeated',
    async () => {
      await using source = await makeSource(from)
      const wholeMs = await timeCopy(source, to)
      /** Kills a copy this time after it has begun to fill its target. Returns whether it was killed before its end. */
      const killCopy = async (afterMs: number) => {
        await using target = await to.make()
        const { child, ended } = await startCopy(source, target)
        await Promise.race([ended, Bun.sleep(afterMs)])
        child.kill('SIGKILL')
        await ended
        return await repeatUnlessWhole(source, target)
      }
      await runRounds(rounds(1, 40), async (random) => void (await killCopy(random(Math.round(wholeMs)))))
      // On a busy machine a copy may end before the kill.
      while (!(await killCopy(0)));
    },
    ROUNDS_TIMEOUT_MS,
  )
})

testRounds(
  'copy that is killed at any call on a file leaves a whole copy or nothing, and is repeated',
  { short: 4, long: 40, needs: [STRACE] },
  async (random) => {
    await using source = await makeSource(SQLITE, 6)
    const copyUnder = async (inject?: Fault) => {
      const target = await SQLITE.make()
      using trace = traceCalls({ ...(inject && { inject }) })
      await runPlantstore(argsOf(source, target), { under: trace.under })
      return { target, calls: (await trace.seen()).calls }
    }
    const whole = await copyUnder()
    await whole.target[Symbol.asyncDispose]()
    const { name, when } = pickCall(whole.calls, random, KILLED_AT)

    const killed = await copyUnder(killAt(name, when))

    await using target = killed.target
    expect(killed.calls.at(-1)).toMatchObject({ name, isLast: true })
    await repeatUnlessWhole(source, target)
  },
)

test.each(['SIGTERM', 'SIGINT'] as const)('copy that %s stops says so and leaves nothing', async (signal) => {
  await using source = await makeSource(SQLITE, MANY_PLANTS)
  await using target = await SQLITE.make()
  const { child, ended } = await startCopy(source, target)
  child.kill(signal)
  const { stdout, stderr, exitCode } = await ended

  expect({ stdout, exitCode }).toEqual({ stdout: '', exitCode: signal === 'SIGINT' ? 130 : 143 })
  expect(stderr).toEndWith(`Stopped by ${signal}: nothing was copied. Run the same command again.\n`)
  expect(readdirSync(dirname(target.database))).toEqual([])
})

/** Requires that a killed copy is whole, or that nothing is there and the copy succeeds now. Returns whether nothing was there. */
async function repeatUnlessWhole(source: EmptyDatabase, target: EmptyDatabase): Promise<boolean> {
  const left = await target.dump()
  const isNothing = left === undefined || left.users.length === 0
  if (isNothing) expect(await copy(source, target)).toMatchObject({ stdout: `${target.database}\n`, exitCode: 0 })
  expect(await target.dump()).toEqual((await source.dump()) as never)
  return isNothing
}

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
  const hasBegun = async () =>
    target.database.includes('://')
      ? (await target.dump().catch(() => undefined)) !== undefined
      : readdirSync(dirname(target.database)).length > 0
  await until('the copy fills its target', async () => child.exitCode !== null || (await hasBegun()))
  return { child, ended }
}
