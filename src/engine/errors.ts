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

/** Refuses a schema after the latest version that this executable knows, and an older one unless that is raised. */
export function requireVersion(database: string, version: number, known: number, isRaised: boolean): void {
  const found = `The database ${database} has schema version ${version}`
  if (version > known)
    throw storeUnusable(`${found}, but this executable knows versions up to ${known}: use the newer executable.`)
  if (version > 0 && version < known && !isRaised)
    throw storeUnusable(`${found}: start the new server, which raises it to ${known}.`)
}
