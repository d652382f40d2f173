import type { DatabaseServer } from '../database-server.ts'
import type { Peers } from '../peers.ts'
import type { RowResult } from '../results.ts'
import type { Workspace } from '../workspace.ts'

/** What a row needs for its measurement. */
export interface Bench {
  /** Each row has its own, which is cleared after the row. */
  readonly workspace: Workspace
  readonly rounds: number
  /** The length of the measurement of a rate, without its warm-up. */
  readonly seconds: number
  readonly peers: Peers
  /** The server for rows on PostgreSQL. */
  readonly databaseServer: DatabaseServer | undefined
  /** Reports progress. */
  readonly say: (text: string) => void
}

/** A kind of work that is measured. */
export interface Row {
  readonly name: string
  readonly title: string
  run(bench: Bench): Promise<RowResult>
}
