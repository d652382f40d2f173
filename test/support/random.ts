import { IS_LONG } from './long.ts'

/** Returns whole numbers from 0 to below a bound, the same ones for each seed (mulberry32). */
export type Random = (bound: number) => number

/** The numbers of a seed. */
export function randomNumbers(seed: number): Random {
  let state = seed >>> 0
  return (bound) => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return Math.floor((((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32) * bound)
  }
}

/**
 * Seeds for so many rounds; or the one in a variable. `bun run check` always gets the same ones, so that no seed decides whether
 * it fails. `bun run check:long` gets new ones, which a test must print.
 */
export function seedsOf(variable: string, count: number): readonly number[] {
  const wanted = process.env[variable]
  if (wanted !== undefined) return [Number(wanted)]
  if (IS_LONG) return [...crypto.getRandomValues(new Uint32Array(count))]
  return Array.from({ length: count }, (_, index) => index + 1)
}
