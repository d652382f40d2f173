// Tested in test/cli/postgres.test.ts.
import type { Clocks } from '../clocks.ts'
import type { ConflictRule, OwnedPlant } from '../domain/plant.ts'
import type { Durability, Store } from '../domain/store.ts'
import { QUEUE_DEADLINES } from '../engine/group-queue.ts'
import type { EngineOptions } from '../engine/sqlite/open.ts'
import type { Cloned as ClonedRows, CloneOptions } from '../engine/sqlite/tools/clone-database.ts'
import type { StoreShare } from '../engine/sqlite/writer.ts'
import type { AppError } from '../error.ts'
import type { Counts } from './tables.ts'
import type { Source, Target } from './tools/contents.ts'

/** How to replace a damaged database file. SQLite would replay the WAL of the old database into the restored one. */
export const RESTORE =
  'End the server, move the database with the -wal and -shm files beside it away, then run plantstore restore: see docs/how-to/troubleshoot.md.'

/** The database that `--database` names, and what can be done with its kind. A server never loads the tools. */
export interface NamedDatabase {
  /** How messages name the database: an absolute path, or a URL without its password. */
  readonly location: string
  readonly repairAdvice: string
  /** Rejects with `store_unusable`. Calls `onFailure` once if the store fails later and must not be written to any more. */
  open(onFailure: (error: AppError) => void, options?: OpenOptions): Promise<OpenedStore>
  /** As `checkIntegrity` of the store, whose schema it never raises. That of a file may be older. */
  check(options: OpenOptions): Promise<readonly string[]>
  /** Loads the tools of a database file. Rejects with `misused` if the database is not a file. */
  fileTools(): Promise<FileTools>
  copyTools(options: CopyOptions): Promise<CopyTools>
}

export type { CloneOptions, StoreShare }

/** A store. `opened` resolves once the thread that writes has its files open. Each further thread needs a share of its own. */
export interface OpenedStore extends Store {
  readonly opened?: Promise<unknown>
  readonly share?: (() => StoreShare) | undefined
}

/** How to reach a PostgreSQL database. A file has no such options. */
export interface DatabaseAccess {
  /** A file with the password, which replaces the one in the URL. It is read for each connection. */
  readonly passwordFile?: string | undefined
  /** Prepares no statements, because a pooler of transactions cannot keep them. */
  readonly preparesNothing?: boolean
}

export interface CopyOptions extends Pick<OpenOptions, 'onEvent' | 'onRaised' | 'durability'> {
  /** Other processes may write to the source, and the copy lacks their writes. */
  readonly isSnapshot?: boolean
}

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

/** How to open a store: as the engine opens a file, with the store's location as the path and `performance.now` as the clock. */
export interface OpenOptions extends Partial<Omit<EngineOptions, OwnOption>> {
  /** `full` by default. */
  readonly durability?: Durability
  /** The most plants that a user may have when `createPlant` or `putPlant` makes one more. No limit if left out. */
  readonly quotaPlants?: number | undefined
  /**
   * Opens the store for a server. It writes in a thread of its own, so that reads never wait for an fsync. If the database cannot
   * be reached, it opens all the same and keeps trying: until then all methods reject.
   */
  readonly isServer?: boolean
  /** How long requests may wait for the database. */
  readonly deadlines?: StoreDeadlines
}

/**
 * How long writes may wait in a queue. With PostgreSQL, also how long statements are repeated after conflicts and lost
 * connections, and when a server without an answer counts as unreachable. Every request gets its answer before the shortest
 * --idle-timeout cuts its connection.
 */
export const STORE_DEADLINES = { ...QUEUE_DEADLINES, repeatMs: 2000, answerMs: 5000 }
export type StoreDeadlines = Readonly<typeof STORE_DEADLINES>

type OwnOption = 'startThread' | 'settings' | 'durability' | 'deadlines' | 'othersSeenWithinMs'

/** What can be done with a database file, also while a server uses the database. */
export interface FileTools {
  /** Makes a backup and verifies it. Rejects with `file_unusable` if the file is there, unless the options say `force`. */
  backup(file: string, options: CloneOptions): Promise<Cloned>
  /** The path of a backup in a directory. Its name has the time. */
  backupIn(directory: string, nowMs: number): string
  /** Makes and verifies a backup that can be read once and has no name. So nothing of it is left when the process ends. */
  backupToRead(options: CloneOptions): Promise<Omit<Cloned, 'path'> & { readonly chunks: AsyncIterable<Uint8Array> }>
  /** Records in the database when a backup began, and its size, for the metrics of servers. Rejects with the driver's error. */
  recordBackup(atMs: number, bytes: number): Promise<void>
  /**
   * Deletes the backups beside the latest one, but for the latest `keep`. Returns the names of the deleted backups, and of those
   * that are dated in the future. Rejects with `misused` and deletes nothing if a backup of another database is there.
   */
  keepBackups(latest: string, keep: number): Promise<Readonly<Record<'deleted' | 'future', readonly string[]>>>
  /** Makes a clone of a backup the database. The backup does not change. No process may have the database open. */
  restore(backup: string, options: CloneOptions): Promise<Cloned>
  /** See `NamedDatabase.check`. */
  check(options: OpenOptions): Promise<readonly string[]>
  /** Looks at the database, and does not update its schema. `onOtherName` is that of `OpenOptions`. */
  status(onOtherName: (problem: string) => void): Promise<FileStatus>
  /**
   * Passes all plants, or the plants of a user, as they are now, to `use`: by user name and id, with their number. The schema may
   * be older. Rejects with `user_not_found`, and after `use` with `store_unusable` if damage may have hidden some of them.
   */
  exportPlants(
    userName: string | undefined,
    use: (batches: Iterable<readonly OwnedPlant[]>, plants: number) => Promise<void>,
  ): Promise<void>
  /**
   * Imports the plants that `use` adds and stores. Of several plants with the same user and id it keeps the last one with
   * `replace`, else the first one. Servers may use the database meanwhile. A rejection of `use` rolls back what is not committed.
   */
  importPlants(rule: ConflictRule, io: Clocks & OpenOptions, use: (target: PlantImport) => Promise<void>): Promise<void>
}

/** The state of a database file, and how much it holds. */
export interface FileStatus extends Counts {
  readonly path: string
  readonly engine: string
  /** Whether another process has the database open. */
  readonly isInUse: boolean
  /** The version of the schema, and the version to which this executable updates it. */
  readonly schema: number
  readonly schemaKnown: number
  readonly bytes: number
  readonly walBytes: number
}

/** An import. All plants wait in a staging table until they are stored. */
export interface PlantImport {
  /** Adds a plant to the staging table. Returns the line of an earlier plant with its user and id, if that one stays instead. */
  add(plant: OwnedPlant, line: number): number | undefined
  /** The lines whose user has a plant with their id already, in the order of the lines. */
  findExisting(): Iterable<ExistingLine>
  /**
   * Stores all plants, and their users if they are new: in one transaction, or in short ones between which servers can write.
   * Yields the numbers of plants that are written and durable, and of users and plants that are new: after each transaction, and
   * now and then during a long one. With `fail` it rejects with `plant_exists` if a user has got one of the plants since.
   */
  store(isAtomic: boolean): AsyncGenerator<Readonly<Record<'written' | 'durable' | 'users' | 'created', number>>>
}

export type ExistingLine = Omit<OwnedPlant, 'plant'> & { readonly line: bigint }

/** A clone that is whole and on disk. `bytes` is the size of the backup, also after a restore. */
export type Cloned = ClonedRows<Counts> & { readonly path: string; readonly bytes: number }
