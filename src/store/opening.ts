import { AppError } from '../domain/error.ts'
import type { Durability } from '../domain/store.ts'

/** How a store is opened. */
export interface OpenOptions {
  /** Refuses a store that is not there instead of making it. */
  readonly mustExist?: boolean
  /** `full` if left out. */
  readonly durability?: Durability
  /** Writes in a thread of its own, so that reads never wait for a sync: what a server needs, and a command does not. */
  readonly writesInThread?: boolean
  /** Told what the operator should know although nothing has failed. */
  readonly onNotice?: (notice: Notice) => void
}

/** What the operator should know although nothing has failed: a line, and the sizes that it is about. */
export interface Notice {
  readonly level: 'warn' | 'info'
  readonly message: string
  readonly sizes: Readonly<Record<string, number>>
}

/** What to do about a damaged store. A WAL of another time would be replayed into the backup, and destroy it. */
export const RESTORE =
  'End the server, remove the database with the -wal and -shm files beside it, then put a backup in its place.'

/** Why a store cannot be opened: one line for the operator, who finds the process ended with exit code 3. */
export const unusable = (message: string, cause?: unknown): AppError =>
  new AppError('store_unusable', { message, cause })
