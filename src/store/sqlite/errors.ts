import { rmSync, writeSync } from 'node:fs'
import { AppError, codeOf } from '../../domain/error.ts'
import { type FileRole, fileDamaged, storeUnusable } from '../errors.ts'
import { withFile } from './files/file-system.ts'

/**
 * Translates SQLite's errors (https://sqlite.org/rescode.html) into `AppError`. Conflicts of keys, which the caller translates,
 * and errors that do not come from the database stay as they are. `path` is the database's file.
 */
export function toAppError(error: unknown, path: string, { duringCommit = false } = {}): unknown {
  const code = codeOf(error)
  if (isLocked(error)) return new AppError('store_busy', { cause: error })
  const isReadOnly = code.startsWith('SQLITE_READONLY') && code !== 'SQLITE_READONLY_DBMOVED'
  if (isOutOfSpace(error) || isReadOnly || (isRefusedWrite(error) && refusesFilesBeside(path))) {
    return new AppError('store_full', { cause: error })
  }
  if (isDamage(error) || /^SQLITE_(?:IOERR|CANTOPEN|PROTOCOL|READONLY_DBMOVED)/.test(code)) {
    return new AppError('store_failed', { outcomeIsUnknown: duringCommit, cause: error })
  }
  return error
}

/** Translates an error that keeps a database or a backup from being opened or read, or a database from being made. */
export function toOpenError(error: unknown, path: string, role: FileRole = 'database'): AppError {
  if (error instanceof AppError) return error
  if (isOutOfSpace(error)) return storeUnusable(`There is no space for the database ${path}: make room.`, error)
  if (isLocked(error)) return storeUnusable(`The database ${path} is locked by another process: end it.`, error)
  if (isDamage(error)) return fileDamaged(role, path, `is damaged: ${String(error)}`, error)
  if (codeOf(error) === 'SQLITE_CANTOPEN') return cannotOpen(path, role, error)
  return storeUnusable(`The file ${path} cannot be used: ${String(error)}.`, error)
}

/** The system does not let this process open the file, or a file beside it. Nobody writes to a backup. */
export function cannotOpen(path: string, role: FileRole, cause: unknown): AppError {
  const need = role === 'backup' ? 'read it' : 'read and write it and the files beside it'
  return storeUnusable(`${path} cannot be opened: let this user ${need}.`, cause)
}

/** A whole block, which needs space. A quota may have room for a name when it has none for content. */
const PROBE = new Uint8Array(4096)

/**
 * SQLite has one code for a broken disk, a file system that turned read-only, and a quota that is used up. A new file shows
 * which it is. Nothing was synced in these cases, so no outcome is unknown.
 */
function refusesFilesBeside(path: string): boolean {
  const probe = `${path}-probe-${crypto.randomUUID()}`
  try {
    withFile(probe, 'wx', (file) => {
      // The name goes first, so that no file is left behind.
      rmSync(probe)
      writeSync(file, PROBE, 0, PROBE.length, 0)
    })
    return false
  } catch (error) {
    return /^(?:EROFS|ENOSPC|EDQUOT)$/.test(codeOf(error))
  }
}

/** Another connection has the lock. */
export const isLocked = (error: unknown): boolean => /^SQLITE_(?:BUSY|LOCKED)/.test(codeOf(error))

/** The disk has no space left for the database, its WAL or its WAL-index. */
export const isOutOfSpace = (error: unknown): boolean => codeOf(error) === 'SQLITE_FULL' || isWalIndexRefused(error)

/** SQLite could not extend the WAL-index. */
export const isWalIndexRefused = (error: unknown): boolean => codeOf(error) === 'SQLITE_IOERR_SHMSIZE'

/** The system refused a write, for another reason than a full disk. Nothing was synced. */
export const isRefusedWrite = (error: unknown): boolean => codeOf(error) === 'SQLITE_IOERR_WRITE'

/** SQLite has read a file that is damaged or is no database. */
export const isDamage = (error: unknown): boolean => /^SQLITE_(?:CORRUPT|NOTADB)/.test(codeOf(error))

/** Whether the code of an error is one of SQLite's extended result codes, like `SQLITE_CONSTRAINT_PRIMARYKEY`. */
export const isOfSqlite = (error: unknown): boolean => codeOf(error).startsWith('SQLITE_')
