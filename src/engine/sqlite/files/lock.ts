// Tested in test/cli/transcripts/databases.txt.
import type { Database } from 'bun:sqlite'
import { rmSync } from 'node:fs'
import { dirname } from 'node:path'
import { AppError, orUndefined } from '../../../error.ts'
import { storeUnusable } from '../../errors.ts'
import { openLocked, rowsOf } from '../driver.ts'
import { isLocked, toOpenError } from '../errors.ts'
import { sizeOf, syncDirectory } from './file-system.ts'

/**
 * Locks a database: no other process has it open, or can use it until the connection is closed. Throws `store_unusable`, with
 * `advice`, if another process has it open, even an idle one: in WAL mode each process that has read a database keeps a shared
 * lock on it, and this lock is exclusive (https://sqlite.org/wal.html#noshm).
 */
export function lockAlone(path: string, advice = 'end it'): Database {
  const lock = (db: Database) => {
    // Before the first read, which takes the lock and recovers the WAL of a killed process.
    db.run('pragma locking_mode = exclusive')
    db.run('pragma synchronous = full')
    db.run('pragma fullfsync = 1')
    // The transaction begins the first page of an empty file, whose journal would outlive a kill.
    if (sizeOf(path) === 0) db.run('pragma journal_mode = memory')
    db.run('begin exclusive')
    db.run('rollback')
  }
  try {
    return openLocked(path, { readwrite: true, create: false, safeIntegers: true, strict: true }, lock, 0)
  } catch (error) {
    if (isLocked(error)) throw storeUnusable(`The database ${path} is open in another process: ${advice}.`, error)
    throw toOpenError(error, path)
  }
}

/** Locks an empty file, so that nobody else replaces it, after a wait for others. Returns `undefined` if the file has content. */
export function lockEmpty(path: string): Database | undefined {
  // An exclusive lock would keep its shared part when it fails, so that two processes would wait for each other.
  const lock = (db: Database) => {
    if (sizeOf(path) > 0) return
    db.run('pragma journal_mode = memory')
    db.run('begin immediate')
  }
  const db = openLocked(path, { readwrite: true, create: false }, lock)
  if (db.inTransaction) return db
  db.close(true)
  return undefined
}

/** Whether another process has a database open. A file that is no database is not open. */
export function isOpenElsewhere(path: string): boolean {
  try {
    using _locked = lockAlone(path)
    return false
  } catch (error) {
    return error instanceof AppError && isLocked(error.cause)
  }
}

/**
 * Prepares the database of `lockAlone` to be replaced by a file that gets its name: brings the WAL into the database and
 * removes the files beside it, durably. So a database never stands beside the WAL of another one. The caller closes the
 * connection after the replacement. A process that waits for the lock then sees that the file has changed.
 */
export function removeSideFiles(db: Database): void {
  const path = db.filename
  try {
    const [[busy] = []] = rowsOf<[busy: bigint]>(db, 'pragma wal_checkpoint(truncate)')
    if (busy !== 0n) throw storeUnusable(`The WAL of the database ${path} cannot be brought into it.`)
    for (const name of ['-wal', '-shm']) rmSync(path + name, { force: true })
    syncDirectory(dirname(path))
  } catch (error) {
    throw toOpenError(error, path)
  }
}

/**
 * Removes the files that SQLite has made beside a database, or the new database too, before it found out that the file system
 * shares no memory. The lock shows that nobody else uses them.
 */
export function removeUnshared(path: string, isNew = false): void {
  orUndefined(() => {
    using locked = lockAlone(path)
    removeSideFiles(locked)
    if (isNew) rmSync(path)
  })
}
