import { test } from 'bun:test'
import { type Random, randomNumbers } from '../support/random.ts'

/** Whether this is `bun run check:long`, with the numbers of rounds that the README names. */
export const IS_LONG = process.env.FAULT_LONG === '1'

/** The number for `bun run check`, or the one for `bun run check:long`. */
export const rounds = (short: number, long: number): number => (IS_LONG ? long : short)

/** How long a test with rounds may take. The short forms take seconds alone, and up to 40 s beside four busy loops. */
export const ROUNDS_TIMEOUT_MS = IS_LONG ? 3_600_000 : 240_000

/** Registers a test that `bun run check:long` alone runs. */
export const testLong = test.skipIf(!IS_LONG)

interface Round {
  readonly seed: number
  readonly random: Random
}

/**
 * Runs seeded rounds, those of `found` first: seeds that once found a fault. A round that fails says its seed, and
 * `FAULT_SEED=… bun run check:long NAME` runs that one alone.
 */
export async function runRounds(
  count: number,
  found: readonly number[],
  run: (round: Round) => Promise<void>,
): Promise<void> {
  const wanted = process.env.FAULT_SEED
  const fresh = Array.from({ length: count }, () => crypto.getRandomValues(new Uint32Array(1))[0] ?? 0)
  for (const seed of wanted === undefined ? [...found, ...fresh] : [Number(wanted)]) {
    try {
      await run({ seed, random: randomNumbers(seed) })
    } catch (error) {
      const cause = firstOf(error)
      throw new Error(`in the round of FAULT_SEED=${seed}: ${cause instanceof Error ? cause.message : cause}`, {
        cause,
      })
    }
  }
  console.log(`${count} rounds, FAULT_SEED=${fresh.join(',').slice(0, 200)}`)
}

/** What went wrong first, where something else did when things were disposed of. */
const firstOf = (error: unknown): unknown => (error instanceof SuppressedError ? firstOf(error.suppressed) : error)
