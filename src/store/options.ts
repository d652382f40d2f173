import type { StoreObserver } from '../domain/statistics.ts'
import type { Durability } from '../domain/store.ts'

export interface OpenOptions {
  /** Rejects if there is no store, instead of creating it. */
  readonly mustExist?: boolean
  /** `full` by default. */
  readonly durability?: Durability
  /** Writes in a thread of its own, so that reads never wait for an fsync. Servers need this. */
  readonly writesInThread?: boolean
  /** Opens the store even if its server cannot be reached, and keeps trying. Until then all methods reject. */
  readonly keepsTrying?: boolean
  /** PostgreSQL: a file with the password. It is read for each connection. */
  readonly passwordFile?: string | undefined
  /** PostgreSQL: prepares no statements, because a pooler of transactions cannot keep them. */
  readonly preparesNothing?: boolean
  /** Called with the location of the store if this created it. */
  readonly onCreated?: (where: string) => void
  /** A clock that never jumps, in milliseconds: `performance.now` if left out. */
  readonly monotonicMs?: () => number
  /** Called with each event that the operator should know of. */
  readonly onEvent?: (event: StoreEvent) => void
  /** Called for each group of writes, for the metrics. */
  readonly observer?: StoreObserver | undefined
}

/** An event that the operator should know of although nothing has failed: a message, and the sizes that it is about. */
export interface StoreEvent {
  readonly level: 'warn' | 'info'
  readonly message: string
  readonly sizes: Readonly<Record<string, number>>
}
