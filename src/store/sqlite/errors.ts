import { AppError } from '../../domain/error.ts'

/**
 * Says in the store's terms what SQLite's result codes (https://sqlite.org/rescode.html) mean. A conflict of keys is
 * the caller's to name; what is no error of the database stays as it is.
 */
export function toAppError(error: unknown, { duringWrite }: { readonly duringWrite: boolean }): unknown {
  const code = sqliteCode(error)
  if (error instanceof AppError || code === undefined) return error
  if (isLocked(error)) return new AppError('store_busy', { cause: error })
  if (isOutOfSpace(error) || (code.startsWith('SQLITE_READONLY') && code !== 'SQLITE_READONLY_DBMOVED')) {
    return new AppError('store_full', { cause: error })
  }
  if (isDamage(error) || /^SQLITE_(?:IOERR|CANTOPEN|PROTOCOL|READONLY_DBMOVED)/.test(code)) {
    return new AppError('store_failed', { outcomeIsUnknown: duringWrite, cause: error })
  }
  return error
}

/** Whether another connection has the lock. */
export const isLocked = (error: unknown): boolean => /^SQLITE_(?:BUSY|LOCKED)/.test(sqliteCode(error) ?? '')

/** Whether there is no space left, be it for the shared memory beside the WAL. */
export const isOutOfSpace = (error: unknown): boolean => /^SQLITE_(?:FULL|IOERR_SHMSIZE)$/.test(sqliteCode(error) ?? '')

/** Whether SQLite says that what it read is no database, or no whole one. */
export const isDamage = (error: unknown): boolean => /^SQLITE_(?:CORRUPT|NOTADB)/.test(sqliteCode(error) ?? '')

/** SQLite's extended result code, like `SQLITE_CONSTRAINT_PRIMARYKEY`; `undefined` for any other error. */
export function sqliteCode(error: unknown): string | undefined {
  if (!(error instanceof Error) || !('code' in error) || typeof error.code !== 'string') return undefined
  return error.code.startsWith('SQLITE_') ? error.code : undefined
}
