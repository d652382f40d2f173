import { spreadOf } from './statistics.ts'

/** The measurements of one contestant, one for each round. */
export interface Figure {
  readonly name: string
  readonly unit: string
  readonly rounds: readonly number[]
  /** The share of its core that the server used, if known. */
  readonly serverBusy?: readonly number[]
}

/** A value with its goal. If more is better, the goal is above the floor, else below. */
export interface Claim {
  readonly name: string
  /** `×` for a ratio. */
  readonly unit: '×' | 'ms' | 'MB' | 'statements'
  readonly goal: number
  /** A worse value fails the row. */
  readonly floor: number
  /** One value for each round. A ratio compares two figures of the same round. */
  readonly rounds: readonly number[]
  /** Whether a goal within the spread of the rounds counts as reached. For two things that shall be equal. */
  readonly isReachedWithinSpread?: boolean
}

/** The result of a claim. */
export type Verdict = 'goal reached' | 'above the floor' | 'BELOW THE FLOOR'

/** Compares the median of a claim's rounds with its goal and its floor. */
export function verdictOf({ goal, floor, rounds, isReachedWithinSpread = false }: Claim): Verdict {
  const { median, min, max } = spreadOf(rounds)
  const moreIsBetter = goal > floor
  const reaches = (value: number, bound: number) => (moreIsBetter ? value >= bound : value <= bound)
  const best = moreIsBetter ? max : min
  if (reaches(isReachedWithinSpread ? best : median, goal)) return 'goal reached'
  return reaches(median, floor) ? 'above the floor' : 'BELOW THE FLOOR'
}

/** The ratios of two figures, round by round. */
export const ratios = (numerators: readonly number[], denominators: readonly number[]): number[] =>
  numerators.map((numerator, round) => numerator / (denominators[round] ?? Number.NaN))
