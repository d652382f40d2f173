import type { Machine } from './machine.ts'
import type { Row } from './rows/row.ts'
import { type Spread, spreadOf } from './statistics.ts'

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
  readonly unit: '×' | 'ms' | 'MB'
  readonly goal: number
  /** A worse value fails the row. */
  readonly floor: number
  /** One value for each round. A ratio compares two figures of the same round. */
  readonly rounds: readonly number[]
}

/** A claim without the values. */
export type Goal = Pick<Claim, 'goal' | 'floor'>

/** What a row measured. */
export interface RowResult {
  readonly figures: readonly Figure[]
  readonly claims: readonly Claim[]
  /** Further facts to print. */
  readonly notes?: readonly string[]
}

/** The result of a row. `failure` says why a row has none. */
export interface ResultRow {
  readonly name: string
  readonly title: string
  readonly claims: readonly (Claim & Spread & { readonly verdict: Verdict })[]
  readonly figures: readonly (Figure & Spread)[]
  readonly notes: readonly string[]
  readonly failure?: string
}

/** The content of `results.json`. */
export interface Results {
  readonly date: string
  readonly machine: Machine
  readonly versions: Readonly<Record<string, string>>
  readonly rounds: number
  readonly seconds: number
  readonly rows: readonly ResultRow[]
}

type Verdict = 'goal reached' | 'above the floor' | 'BELOW THE FLOOR'

/** The result of a row that was measured, or that could not be. */
export const resultRow = (
  { name, title }: Row,
  { claims, figures, notes = [] }: RowResult,
  failure?: string,
): ResultRow => ({
  name,
  title,
  claims: claims.map((claim) => ({ ...claim, ...spreadOf(claim.rounds), verdict: verdictOf(claim) })),
  figures: figures.map((figure) => ({ ...figure, ...spreadOf(figure.rounds) })),
  notes,
  ...(failure !== undefined && { failure }),
})

/** Whether a row was measured and is not below its floor. */
export const isAcceptable = ({ failure, claims }: ResultRow): boolean =>
  failure === undefined && claims.every(({ verdict }) => verdict !== 'BELOW THE FLOOR')

/** Compares the median of a claim's rounds with its goal and its floor. */
function verdictOf({ goal, floor, rounds }: Claim): Verdict {
  const { median } = spreadOf(rounds)
  const reaches = (bound: number) => (goal > floor ? median >= bound : median <= bound)
  if (reaches(goal)) return 'goal reached'
  return reaches(floor) ? 'above the floor' : 'BELOW THE FLOOR'
}
