import { describe, expect, test } from 'bun:test'
import { readdirSync } from 'node:fs'
import { dirname } from 'node:path'
import { type EmptyPlace, type PlaceKind, POSTGRES, SQLITE } from '../support/copy-places.ts'
import { COMMAND, runPlantstore, serve } from '../support/executable.ts'
import { addPlants } from '../support/many-plants.ts'
import { POSTGRES_SERVER } from '../support/postgres.ts'
import { startProgram } from '../support/program.ts'
import { lacks } from '../support/requirement.ts'
import { createTokenIn } from '../support/tokens.ts'
import { ROUNDS_TIMEOUT_MS, rounds, runRounds } from './rounds.ts'

const PLANTS = 20_000
/** So many that a signal comes before they are copied. */
const MANY_PLANTS = 300_000
const UNFINISHED =
  /exit code 3\nplantstore: The database [^\n]+ is a copy that is not finished: run plantstore copy again[^\n]+\n$/

describe.each([
  { from: SQLITE, to: SQLITE },
  { from: SQLITE, to: POSTGRES },
  { from: POSTGRES, to: SQLITE },
])('copy from $from.name to $to.name', ({ from, to }) => {
  const isSkipped = lacks(POSTGRES_SERVER) && (from === POSTGRES || to === POSTGRES)

  test.skipIf(isSkipped)(
    'that is killed leaves what no server takes, or all of it, and is started over',
    async () => {
      await using source = await makeSource(from)
      const content = await source.dump()
      const wholeMs = await timeCopy(source, to)
      let refused = 0
      let round = 0
      await runRounds(rounds(3, 40), async (random) => {
        await using target = await to.make()
        // The first one is killed as soon as there is something to leave.
        await killCopy(source, target, round++ === 0 ? 0 : random(Math.round(wholeMs)))

        const outcome = await serveOnce(target)
        if (outcome !== 'served') {
          refused++
          expect(outcome).toMatch(UNFINISHED)
          expect(await copy(source, target)).toMatchObject({ stdout: `${target.database}\n`, exitCode: 0 })
        }
        expect(await target.dump()).toEqual(content as never)
        if (to === SQLITE) expect(readdirSync(dirname(target.database))).toEqual(['plantstore.db'])
      })
      expect(refused).toBeGreaterThan(0)
    },
    ROUNDS_TIMEOUT_MS,
  )
})

describe('copy', () => {
  test.each(['SIGTERM', 'SIGINT'] as const)(
    'ends by %s between two batches, says so, and is started over',
    async (signal) => {
      await using source = await makeSource(SQLITE, MANY_PLANTS)
      await using target = await SQLITE.make()
      const { child, ended } = startProgram([...COMMAND, ...argsOf(source, target)], {
        env: { PATH: process.env.PATH ?? '' },
      })
      while (child.exitCode === null && !(await target.isUnfinished())) await Bun.sleep(1)
      child.kill(signal)
      const { stdout, stderr, exitCode } = await ended

      expect({ stdout, exitCode }).toEqual({ stdout: '', exitCode: signal === 'SIGINT' ? 130 : 143 })
      expect(stderr).toMatch(
        new RegExp(
          `^Stopped by ${signal}: (?:no plant is|\\d+ of ${MANY_PLANTS} plants are) (?:copied|verified|compared)\\. No server takes the unfinished copy: run the same command again, which starts it over\\.\n$`,
          'm',
        ),
      )
      expect(readdirSync(dirname(target.database))).toEqual(['plantstore.db'])
      expect(await serveOnce(target)).toMatch(UNFINISHED)
      expect(await copy(source, target)).toMatchObject({ exitCode: 0 })
      expect(await target.dump()).toEqual((await source.dump()) as never)
    },
  )
})

/** A store with plants of two users. */
async function makeSource(kind: PlaceKind, plants = PLANTS): Promise<EmptyPlace> {
  const made = await SQLITE.make()
  for (const user of ['me', 'you']) await createTokenIn(made.database, user)
  addPlants(made.database, plants / 2)
  if (kind === SQLITE) return made
  await using original = made
  const copied = await kind.make()
  expect(await copy(original, copied)).toMatchObject({ exitCode: 0 })
  return copied
}

const argsOf = (source: EmptyPlace, target: EmptyPlace) => ['copy', '--from', source.database, '--to', target.database]
const copy = (source: EmptyPlace, target: EmptyPlace) => runPlantstore(argsOf(source, target))

/** How long a copy takes that nobody kills. */
async function timeCopy(source: EmptyPlace, kind: PlaceKind): Promise<number> {
  await using target = await kind.make()
  const begunMs = performance.now()
  expect(await copy(source, target)).toMatchObject({ exitCode: 0 })
  return performance.now() - begunMs
}

/** Kills a copy some time after it has begun to fill its target. */
async function killCopy(source: EmptyPlace, target: EmptyPlace, delayMs: number): Promise<void> {
  const child = Bun.spawn([...COMMAND, ...argsOf(source, target)], {
    env: { PATH: process.env.PATH ?? '' },
    stdio: ['ignore', 'ignore', 'ignore'],
  })
  while (child.exitCode === null && !(await target.isUnfinished())) await Bun.sleep(1)
  await Promise.race([child.exited, Bun.sleep(delayMs)])
  child.kill('SIGKILL')
  await child.exited
}

/** What becomes of a server on that store: it serves, or what it says. */
async function serveOnce({ database }: EmptyPlace): Promise<string> {
  const server = await serve(database).catch((error) => (error instanceof Error ? error.message : String(error)))
  if (typeof server === 'string') return server
  expect(await server.end()).toBe(0)
  return 'served'
}
