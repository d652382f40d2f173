// Tested in test/engine/toy.test.ts.
import type { Database } from 'bun:sqlite'

/** A write by its name. Its arguments survive JSON, which takes them to the thread that writes. */
export type Call = readonly [name: string, ...args: readonly unknown[]]

/**
 * The writes of a program by their names. Each runs inside a transaction that it may share with others. To refuse, it throws an
 * error with a `kind` and a message, and must have changed nothing.
 */
export type Writes = Readonly<Record<string, (...args: never[]) => unknown>>

/** What a write changes for readers: an owner's rows, all or from an id on; what all owners share; or everything. */
export type Change = { readonly owner: number; readonly lowestId: bigint | undefined } | 'shared' | 'everything'

/** What a product does on the connection that writes. The engine knows nothing else of it. */
export interface Program<Settings = unknown> {
  /**
   * Prepares the writes. The settings are data that a message between threads can have. `forget` is called after a rollback and
   * after a commit of another process: what the writes remember of the database may be wrong.
   */
  open(writer: Database, settings: Settings): { readonly writes: Writes; forget(): void }
  /** What a write has changed for readers. Asked after the write ran and before its commit. A refused write changes nothing. */
  invalidates(call: Call): Change | undefined
  /** Whether a write adds little to the WAL. */
  isSmall(call: Call): boolean
}
