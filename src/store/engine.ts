import type { AppError } from '../domain/error.ts'
import type { Durability, Store, StoreObserver } from '../domain/store.ts'
import type { fileTools } from './sqlite/tools/file-tools.ts'
import type { Source, Target } from './tools/contents.ts'

/** The kind of database that `--database` names, and what it can do. A server never loads the tools. */
export interface Engine {
  /** How messages name the database: an absolute path, or a URL without its password. */
  readonly location: string
  /** What to do if the database is damaged. */
  readonly repairAdvice: string
  /**
   * Opens the store. Rejects with `store_unusable`. Calls `onFailure` once if the store fails later and must not be written to
   * any more.
   */
  open(onFailure: (error: AppError) => void, options?: OpenOptions): Promise<Store>
  /** Loads the tools of a database file. Rejects with `misused` if the database is not a file. */
  fileTools(): Promise<FileTools>
  /** Loads what `copy` needs. */
  copyTools(options: CopyAccess): Promise<CopyTools>
}

/** How `copy` uses both stores. */
export interface CopyAccess extends Pick<OpenOptions, 'onEvent' | 'passwordFile' | 'durability'> {
  /** Other processes may write to the source, and the copy lacks their writes. */
  readonly isSnapshot?: boolean
}

/** Both ends of a copy. */
export interface CopyTools {
  /**
   * Opens the store to copy from. Without `isSnapshot`, a copy of a store that is written to meanwhile rejects with
   * `store_unusable`. A SQLite file must not even be open in another process.
   */
  read<T>(use: (source: Source) => Promise<T>): Promise<T>
  /**
   * Makes a store of what `fill` inserts, durably, once `fill` resolves. A SQLite file must not exist yet, and a PostgreSQL
   * database must have no rows: else this rejects with `store_unusable`. If anything rejects, the store is as it was, unless the
   * message says that the outcome is unknown.
   */
  fill<T>(fill: (target: Target) => Promise<T>): Promise<T>
}

export interface OpenOptions {
  /** Rejects if there is no store, instead of creating it. */
  readonly mustExist?: boolean
  /** `full` by default. */
  readonly durability?: Durability
  /** The most plants that a user may have when `createPlant` creates one more. No limit if left out. */
  readonly quotaPlants?: number | undefined
  /**
   * Opens the store for a server. It writes in a thread of its own, so that reads never wait for an fsync. If the database cannot
   * be reached, it opens all the same and keeps trying: until then all methods reject.
   */
  readonly isServer?: boolean
  /** PostgreSQL: a file with the password, which replaces the one in the URL. It is read for each connection. */
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

/** What can be done with a database file, also while a server uses the database. */
export type FileTools = ReturnType<typeof fileTools>

/** The number of rows of each table. */
export interface Counts {
  readonly users: number
  readonly tokens: number
  readonly plants: number
}

/** How `backup` and `restore` clone a database. */
export interface CloneOptions {
  /** Called with the number of plants that are cloned, and the number of all plants. */
  readonly onProgress?: (done: number, total: number) => void
  /** Stops the task. The clone is deleted, and the reason of the signal is thrown. */
  readonly signal?: AbortSignal
  /** Replaces an existing file. */
  readonly force?: boolean
}

/** A clone that is whole and on disk. `dropped` lists the objects of other programs that it leaves out, for a message. */
export interface Cloned extends Counts {
  readonly dropped: string
  readonly path: string
  /** The size of the backup, also after a restore: the restored database lacks the record that makes a file a backup. */
  readonly bytes: number
}
