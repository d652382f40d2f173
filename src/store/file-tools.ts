import type { ConflictRule, PlantExport, PlantImport } from '../domain/transfer.ts'
import type { StagingTable } from './sqlite/tools/staging-table.ts'

export type { StagingTable }

/** What can be done with a database file, also while a server uses the database. */
export interface FileTools {
  /** Makes a backup as a file. Rejects with `store_unusable` for the database, and with `file_unusable` for the backup. */
  backup(file: string, options: CopyOptions): Promise<Copied>
  /** Makes a backup in a directory. The time is in the name of the backup. */
  backupInto(directory: string, options: CopyOptions & { readonly nowMs: number }): Promise<Copied>
  /** Makes a backup that has no name and can be read once. */
  backupToRead(options: CopyOptions): Promise<ReadableBackup>
  /** Deletes old backups of the database that are beside its latest backup, but for the latest `keep`. */
  keepBackups(latest: string, keep: number): KeptBackups
  /** Replaces the database, which no process may have open, by a backup. Rejects with `store_unusable`. */
  restore(backup: string, options: CopyOptions): Promise<Restored>
  /** Looks at the database and changes nothing. */
  status(nowMs: number): Promise<StoreStatus>
  /** Begins to export all plants, or the plants of a user. Rejects as `Engine.open` does, and with `user_not_found`. */
  exportPlants(userName: string | undefined): Promise<PlantExport>
  /** Opens the database to import plants. Rejects as `Engine.open` does. */
  openImport(nowMs: () => number): Promise<PlantImport>
  /** Opens a staging table for an import, beside the database. */
  openStagingTable(rule: ConflictRule): StagingTable
}

/** The names of the backups that were deleted, and what the operator should know of the files that were not. */
export interface KeptBackups {
  readonly deleted: readonly string[]
  readonly notices: readonly string[]
}

/** The number of rows of each table. */
export interface Counts {
  readonly users: number
  readonly tokens: number
  readonly plants: number
}

/** How `backup` and `restore` copy a database. */
export interface CopyOptions {
  /** Called with the number of plants that are copied, and the number of all plants. */
  readonly onProgress?: (done: number, total: number) => void
  /** Stops the copy. It is deleted, and the reason of the signal is thrown. */
  readonly signal?: AbortSignal
  /** Replaces an existing file. */
  readonly force?: boolean
}

/** A copy that is whole and on disk. */
export interface Copied extends Counts {
  readonly path: string
  readonly bytes: number
}

/** A backup without a name. It can be read once. */
export interface ReadableBackup extends Counts {
  readonly bytes: number
  readonly chunks: Iterable<Uint8Array>
}

/** A database that was restored from a backup. */
export interface Restored extends Copied {
  /** The tables and indexes of other programs that were not copied, for a message. Empty if there were none. */
  readonly dropped: string
}

/** A database as it is now. Active tokens are neither revoked nor expired. */
export interface StoreStatus extends Counts {
  readonly path: string
  readonly engine: string
  /** Whether another process has the database open. */
  readonly isInUse: boolean
  /** The version of the schema, and the version to which this executable updates it. */
  readonly schema: number
  readonly schemaKnown: number
  readonly bytes: number
  /** The part of these bytes that deleted rows have left. SQLite uses it again. */
  readonly freeBytes: number
  readonly walBytes: number
  readonly activeTokens: number
}
