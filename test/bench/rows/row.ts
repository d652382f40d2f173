import type { Claim, Figure } from '../claims.ts'
import type { DatabaseServer } from '../database-server.ts'
import type { Workspace } from '../workspace.ts'

/** What a row needs for its measurement. */
export interface Bench {
  /** Each row has its own, which is cleared after the row. */
  readonly workspace: Workspace
  readonly rounds: number
  /** The length of the measurement of a rate, without its warm-up. */
  readonly seconds: number
  /** The server for rows on PostgreSQL. */
  readonly databaseServer: DatabaseServer | undefined
  /** Reports progress. */
  readonly say: (text: string) => void
}

/** The result of a row. */
export interface RowResult {
  readonly figures: readonly Figure[]
  readonly claims: readonly Claim[]
  /** Further facts to print. */
  readonly notes?: readonly string[]
}

/** A kind of work that is measured. */
export interface Row {
  readonly name: string
  readonly title: string
  run(bench: Bench): Promise<RowResult>
}

/** A latency is measured this many times longer than a rate, because few requests make up its p99. */
export const LATENCY_TIMES = 4
