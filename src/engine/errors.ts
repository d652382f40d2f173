// Tested in test/engine/sqlite/failure.test.ts.
import { AppError, type Remedy } from '../error.ts'

/** The database that a server uses, or a backup that is to replace it. */
export type FileRole = 'database' | 'backup'

/** The store cannot be opened. The message is one line for the operator. */
export const storeUnusable = (message: string, cause?: unknown, remedy?: Remedy): AppError =>
  new AppError('store_unusable', { message, cause, remedy })

/** A file is damaged or truncated, or another program has changed it. */
export function fileDamaged(role: FileRole, path: string, problem: string, cause?: unknown): AppError {
  const message = `The ${role} ${path} ${problem}`
  if (role === 'database') return storeUnusable(message, cause, 'restore')
  return storeUnusable(`${message}. Name another one: nothing was changed.`, cause)
}

/** Says that a newer executable has migrated the store. `known` is the latest version that this one knows. */
export const describeTooNew = (database: string, version: number, known: number): string =>
  `The database ${database} has schema version ${version}, but this executable knows versions up to ${known}: use the newer executable.`
