import { AppError } from '../domain/error.ts'

/** How to replace a damaged database file. SQLite would replay the WAL of the old database into the restored one. */
export const RESTORE =
  'End the server, move the database with the -wal and -shm files beside it away, then run plantstore restore: see docs/how-to/backup-restore.md.'

/** The database that a server uses, or a backup that is to replace it. */
export type FileRole = 'database' | 'backup'

/** The store cannot be opened. The message is one line for the operator, and the process ends with exit code 3. */
export const storeUnusable = (message: string, cause?: unknown): AppError =>
  new AppError('store_unusable', { message, cause })

/** A file is damaged or truncated, or another program has changed it. The message says what to do. */
export function fileDamaged(role: FileRole, path: string, problem: string, cause?: unknown): AppError {
  const advice = role === 'database' ? RESTORE : 'Name another one: nothing was changed.'
  return storeUnusable(`The ${role} ${path} ${problem}. ${advice}`, cause)
}

/** A newer executable has migrated the store. `known` is the latest version that this one knows. */
export const schemaTooNew = (database: string, version: number, known: number): AppError =>
  storeUnusable(
    `The database ${database} has schema version ${version}, but this executable knows versions up to ${known}: use the newer executable.`,
  )
