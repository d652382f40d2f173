import { spreadOf } from './statistics.ts'

/** A number per round that was measured of one contestant. */
export interface Figure {
  readonly name: string
  readonly unit: string
  readonly rounds: readonly number[]
  /** The share of the time in which the server had its core, where that is known. */
  readonly serverBusy?: readonly number[]
}

/** What is compared with a goal. The goal is above the floor where more is better, and below it where less is. */
export interface Claim {
  readonly name: string
  /** `×` for a ratio. */
  readonly unit: '×' | 'ms' | 'MB' | 'statements'
  readonly goal: number
  /** Beyond this it counts as not done. */
  readonly floor: number
  /** Each round's; a ratio is one of two figures of the same round. */
  readonly rounds: readonly number[]
  /** Whether a goal that lies within the spread of the rounds is reached: where two things shall be the same. */
  readonly isReachedWithinSpread?: boolean
}

/** What became of a claim. */
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
