/** The nearest-rank percentile. `share` is from 0 to 1. */
export function percentile(values: readonly number[] | Float64Array, share: number): number {
  const sorted = Float64Array.from(values).sort()
  const rank = Math.min(sorted.length - 1, Math.max(0, Math.ceil(share * sorted.length) - 1))
  return sorted[rank] ?? Number.NaN
}

/** The middle value, or the mean of the two middle values. */
export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b)
  const middle = (sorted.length - 1) / 2
  const [low = Number.NaN, high = Number.NaN] = [sorted[Math.floor(middle)], sorted[Math.ceil(middle)]]
  return (low + high) / 2
}

/** The median, the lowest and the highest value of some rounds. */
export interface Spread {
  readonly median: number
  readonly min: number
  readonly max: number
}

/** The spread of some rounds. */
export const spreadOf = (rounds: readonly number[]): Spread => ({
  median: median(rounds),
  min: Math.min(...rounds),
  max: Math.max(...rounds),
})

/** The ratios of two contestants' measurements, round by round. */
export const ratios = (numerators: readonly number[], denominators: readonly number[]): number[] =>
  numerators.map((numerator, round) => numerator / (denominators[round] ?? Number.NaN))
