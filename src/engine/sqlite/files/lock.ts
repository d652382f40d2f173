import type { Database } from 'bun:sqlite'
import { rmSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import { EngineError, orUndefined, storeUnusable } from '../../errors.ts'
import { openLocked, rowsOf } from '../driver.ts'
import { isLocked, toOpenError } from '../errors.ts'
import { syncDirectory } from './file-system.ts'

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
    // This writes the first page of an empty file, whose journal would outlive a kill and look like that of another database.
    if (statSync(path).size === 0) db.run('pragma journal_mode = memory')
    db.run('begin exclusive')
    db.run('commit')
  }
  try {
    return openLocked(path, { readwrite: true, create: false, safeIntegers: true, strict: true }, lock, 0)
  } catch (error) {
    if (isLocked(error)) throw storeUnusable(`The database ${path} is open in another process: ${advice}.`, error)
    throw toOpenError(error, path)
  }
}

/** Whether another process has a database open. A file that is no database is not open. */
export function isOpenElsewhere(path: string): boolean {
  try {
    using _locked = lockAlone(path)
    return false
  } catch (error) {
    return error instanceof EngineError && isLocked(error.cause)
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
