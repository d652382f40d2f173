import { test } from 'bun:test'
import { IS_LONG } from '../support/long.ts'
import { type Random, randomNumbers, seedsOf } from '../support/random.ts'
import { lacks, type Requirement } from '../support/requirement.ts'

/** The number for `bun run check`, or the one for `bun run check:long`. */
export const rounds = (short: number, long: number): number => (IS_LONG ? long : short)

/** Registers a test that only `bun run check:long` runs. */
export const testLong = test.skipIf(!IS_LONG)

interface RoundsOptions {
  /** The number of rounds for `bun run check`. */
  readonly short: number
  /** The number of rounds for `bun run check:long`. */
  readonly long: number
  /** Without these the test is skipped. */
  readonly needs?: readonly Requirement[]
}

/** Registers a test of seeded rounds. Skips it if it has none. */
export function testRounds(
  title: string,
  { short, long, needs = [] }: RoundsOptions,
  run: (random: Random) => Promise<void>,
): void {
  const count = rounds(short, long)
  test.skipIf(count === 0 || lacks(...needs))(title, () => runRounds(count, run))
}

/**
 * Runs rounds with a seed each. A round that fails prints its seed, and `FAULT_SEED=… bun run check:long NAME` runs that
 * round alone.
 */
export async function runRounds(count: number, run: (random: Random) => Promise<void>): Promise<void> {
  const seeds = seedsOf('FAULT_SEED', count)
  for (const seed of seeds) {
    try {
      await run(randomNumbers(seed))
    } catch (error) {
      const cause = firstOf(error)
      throw new Error(`in the round of FAULT_SEED=${seed}: ${cause instanceof Error ? cause.message : cause}`, {
        cause,
      })
    }
  }
  console.log(`${seeds.length} rounds, FAULT_SEED=${seeds.join(',').slice(0, 200)}`)
}

/** The first error, if disposing of things caused another one. */
const firstOf = (error: unknown): unknown => (error instanceof SuppressedError ? firstOf(error.suppressed) : error)
