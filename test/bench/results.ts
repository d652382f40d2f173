import { type Claim, type Figure, type Verdict, verdictOf } from './claims.ts'
import type { Machine } from './machine.ts'
import type { Row, RowResult } from './rows/row.ts'
import { type Spread, spreadOf } from './statistics.ts'

/** The content of `results.json`. */
export interface Results {
  readonly date: string
  readonly machine: Machine
  readonly versions: Readonly<Record<string, string>>
  readonly rounds: number
  readonly seconds: number
  readonly rows: readonly ResultRow[]
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

/** A row that was measured. */
export const measuredRow = ({ name, title }: Row, { claims, figures, notes = [] }: RowResult): ResultRow => ({
  name,
  title,
  claims: claims.map((claim) => ({ ...claim, ...spreadOf(claim.rounds), verdict: verdictOf(claim) })),
  figures: figures.map((figure) => ({ ...figure, ...spreadOf(figure.rounds) })),
  notes,
})

/** A row that could not be measured. */
export const failedRow = ({ name, title }: Row, failure: string): ResultRow => ({
  name,
  title,
  claims: [],
  figures: [],
  notes: [],
  failure,
})

/** Whether all rows were measured and none is below its floor. */
export const isAcceptable = ({ rows }: Pick<Results, 'rows'>): boolean =>
  rows.every(
    ({ failure, claims }) => failure === undefined && claims.every(({ verdict }) => verdict !== 'BELOW THE FLOOR'),
  )
