import { closeSync, openSync, rmSync, writeSync } from 'node:fs'
import { AppError } from '../../domain/error.ts'

/**
 * Says in the store's terms what SQLite's result codes (https://sqlite.org/rescode.html) mean. A conflict of keys is
 * the caller's to name; what is no error of the database stays as it is.
 */
export function toAppError(error: unknown, { duringWrite, path }: Circumstances): unknown {
  const code = sqliteCode(error)
  if (error instanceof AppError || code === undefined) return error
  if (isLocked(error)) return new AppError('store_busy', { cause: error })
  const isReadOnly = code.startsWith('SQLITE_READONLY') && code !== 'SQLITE_READONLY_DBMOVED'
  if (isOutOfSpace(error) || isReadOnly || (isRefusedWrite(error) && refusesFilesBeside(path))) {
    return new AppError('store_full', { cause: error })
  }
  if (isDamage(error) || /^SQLITE_(?:IOERR|CANTOPEN|PROTOCOL|READONLY_DBMOVED)/.test(code)) {
    return new AppError('store_failed', { outcomeIsUnknown: duringWrite, cause: error })
  }
  return error
}

interface Circumstances {
  readonly duringWrite: boolean
  /** The database's file. */
  readonly path: string
}

/** Enough to need space of its own: a quota may have room for names when it has none for what is in the files. */
const PROBE = new Uint8Array(4096)

/**
 * SQLite says the same of a broken disk and of a file system that turned read-only, or whose quota is used up: what the
 * system says of a new file tells them apart. Nothing was synced then, so nothing is in doubt.
 */
function refusesFilesBeside(path: string): boolean {
  const probe = `${path}-probe-${crypto.randomUUID()}`
  try {
    const file = openSync(probe, 'wx', 0o600)
    try {
      // Its name first, so that nothing of it can stay behind.
      rmSync(probe)
      writeSync(file, PROBE, 0, PROBE.length, 0)
    } finally {
      closeSync(file)
    }
    return false
  } catch (error) {
    return error instanceof Error && 'code' in error && /^(?:EROFS|ENOSPC|EDQUOT)$/.test(String(error.code))
  }
}

/** Whether another connection has the lock. */
export const isLocked = (error: unknown): boolean => /^SQLITE_(?:BUSY|LOCKED)/.test(sqliteCode(error) ?? '')

/** Whether there is no space left, be it for the shared memory beside the WAL. */
export const isOutOfSpace = (error: unknown): boolean => sqliteCode(error) === 'SQLITE_FULL' || isWalIndexRefused(error)

/** Whether SQLite could not extend the WAL-index. */
export const isWalIndexRefused = (error: unknown): boolean => sqliteCode(error) === 'SQLITE_IOERR_SHMSIZE'

/** Whether the system took no bytes, for whatever reason but that it has no space: nothing was synced then. */
export const isRefusedWrite = (error: unknown): boolean => sqliteCode(error) === 'SQLITE_IOERR_WRITE'

/** Whether SQLite says that what it read is no database, or no whole one. */
export const isDamage = (error: unknown): boolean => /^SQLITE_(?:CORRUPT|NOTADB)/.test(sqliteCode(error) ?? '')

/** SQLite's extended result code, like `SQLITE_CONSTRAINT_PRIMARYKEY`; `undefined` for any other error. */
export function sqliteCode(error: unknown): string | undefined {
  if (!(error instanceof Error) || !('code' in error) || typeof error.code !== 'string') return undefined
  return error.code.startsWith('SQLITE_') ? error.code : undefined
}
