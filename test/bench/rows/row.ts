import type { Claim, Figure } from '../claims.ts'
import type { DatabaseServer } from '../database-server.ts'
import type { Workspace } from '../workspace.ts'

/** What a row is measured with. */
export interface Bench {
  /** The row's own: what it leaves behind is cleared away. */
  readonly workspace: Workspace
  readonly rounds: number
  /** What a measurement of a rate takes, without its warm-up. */
  readonly seconds: number
  /** What rows on PostgreSQL are measured on. */
  readonly databaseServer: DatabaseServer | undefined
  /** Tells what is under way. */
  readonly say: (text: string) => void
}

/** What came of a row. */
export interface RowResult {
  readonly figures: readonly Figure[]
  readonly claims: readonly Claim[]
  /** What is worth knowing besides. */
  readonly notes?: readonly string[]
}

/** A kind of work that is measured. */
export interface Row {
  readonly name: string
  readonly title: string
  run(bench: Bench): Promise<RowResult>
}

/** How many times longer a latency is measured than a rate: its p99 is made of few requests. */
export const LATENCY_TIMES = 4
