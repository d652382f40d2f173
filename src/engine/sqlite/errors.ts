// Tested in test/engine/sqlite/failure.test.ts.
import { rmSync, writeSync } from 'node:fs'
import { AppError, codeOf } from '../../error.ts'
import { type FileRole, fileDamaged, storeUnusable } from '../errors.ts'
import { sizeOf, withFile } from './files/file-system.ts'

/**
 * Translates SQLite's errors (https://sqlite.org/rescode.html) into `AppError`. Conflicts of keys, which the caller
 * translates, and errors that do not come from the database stay as they are. `path` is the database's file.
 */
export function toEngineError(error: unknown, path: string, { duringCommit = false } = {}): unknown {
  const code = codeOf(error)
  if (isLocked(error)) return new AppError('store_busy', { cause: error })
  const isReadOnly = code.startsWith('SQLITE_READONLY') && code !== 'SQLITE_READONLY_DBMOVED'
  const isOfSystem = isRefusedWrite(error) || code === 'SQLITE_CANTOPEN'
  if (isReadOnly || (isOfSystem ? refusesFilesBeside(path) : isOutOfSpace(error))) {
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
  const isUnopened = codeOf(error) === 'SQLITE_CANTOPEN'
  if (isOutOfSpace(error) || (isUnopened && role === 'database' && refusesFilesBeside(path)))
    return storeUnusable(`There is no space for the database ${path}: make room.`, error)
  if (isUnshared(error)) return storeUnusable(`The disk of ${path} shares no memory: keep it on a local disk.`, error)
  if (isLocked(error)) return storeUnusable(`The database ${path} is locked by another process: end it.`, error)
  if (isDamage(error)) return fileDamaged(role, path, `is damaged: ${String(error)}`, error)
  if (isUnopened) return cannotOpen(path, role, error)
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
 * SQLite has one code for all writes that the system refuses, as on a broken disk, a read-only one or a full quota, and one for
 * all files that do not open. A new file as long as both others shows why. Nothing was synced, so no outcome is unknown.
 */
function refusesFilesBeside(path: string): boolean {
  const probe = `${path}-probe-${crypto.randomUUID()}`
  try {
    withFile(probe, 'wx', (file) => {
      // The name goes first, so that no file is left behind.
      rmSync(probe)
      writeSync(file, PROBE, 0, PROBE.length, sizeOf(path) + sizeOf(`${path}-wal`))
    })
    return false
  } catch (error) {
    return /^(?:EROFS|ENOSPC|EDQUOT|EFBIG)$/.test(codeOf(error))
  }
}

export const isLocked = (error: unknown): boolean => /^SQLITE_(?:BUSY|LOCKED)/.test(codeOf(error))

/** The disk has no space left for the database, its WAL or its WAL-index, unless `isRefusedWrite` has another reason. */
export const isOutOfSpace = (error: unknown): boolean =>
  /^(?:SQLITE_FULL|ENOSPC|EDQUOT)$/.test(codeOf(error)) || isWalIndexRefused(error) || isRefusedWrite(error)

/** SQLite could not extend the WAL-index. */
export const isWalIndexRefused = (error: unknown): boolean => codeOf(error) === 'SQLITE_IOERR_SHMSIZE'

/** The system refused a write, for another reason than a full disk. Nothing was synced. */
export const isRefusedWrite = (error: unknown): boolean => codeOf(error) === 'SQLITE_IOERR_WRITE'

/** The file system cannot share memory between processes, which SQLite needs for the WAL-index. */
export const isUnshared = (error: unknown): boolean => /^SQLITE_IOERR_SHM(?:MAP|OPEN|LOCK)/.test(codeOf(error))

/** SQLite has read a file that is damaged or is no database. */
export const isDamage = (error: unknown): boolean => /^SQLITE_(?:CORRUPT|NOTADB)/.test(codeOf(error))

/** Whether the code of an error is one of SQLite's extended result codes, like `SQLITE_CONSTRAINT_PRIMARYKEY`. */
export const isOfSqlite = (error: unknown): boolean => codeOf(error).startsWith('SQLITE_')
