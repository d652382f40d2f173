import type { fileTools } from './sqlite/tools/file-tools.ts'

export type { ImportCounts, PlantImport } from './sqlite/tools/import.ts'
export type { StoreStatus } from './sqlite/tools/status.ts'

/** What can be done with a database file, also while a server uses the database. */
export type FileTools = ReturnType<typeof fileTools>

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
