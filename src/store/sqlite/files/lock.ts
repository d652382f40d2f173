import type { Database } from 'bun:sqlite'
import { rmSync } from 'node:fs'
import { dirname } from 'node:path'
import { storeUnusable } from '../../errors.ts'
import { openDatabase, rowsOf } from '../connection.ts'
import { isLocked } from '../errors.ts'
import { syncDirectory } from './partial-files.ts'

/** A database that nobody else has open, nor can open for long, until it is released or disposed of. */
export interface Locked extends Disposable {
  /** The connection that has the lock: it reads numbers as bigints. */
  readonly db: Database
  /**
   * Ends the lock, to replace the file at once: it is all of the database then. What its WAL held is in it, and the files
   * beside it are gone, durably. So at no moment is there a database without a WAL of its own, or with one of another's.
   */
  release(): void
}

/**
 * Locks a database. Throws `store_unusable` where any process has it open, be it idle: in WAL mode whoever has looked at a
 * database shares a lock on it until it is closed, which this one does not share (https://sqlite.org/wal.html#noshm).
 * `advice` says what to do then.
 */
export function lockAlone(path: string, advice = 'end it'): Locked {
  const db = openDatabase(path, { readwrite: true, create: false, safeIntegers: true, strict: true })
  try {
    // Before the first look, which takes the lock, and recovers a WAL that a killed process has left.
    db.run('pragma locking_mode = exclusive')
    db.run('pragma synchronous = full')
    db.run('pragma fullfsync = 1')
    db.run('begin exclusive')
    db.run('commit')
  } catch (error) {
    db.close(true)
    if (isLocked(error)) throw storeUnusable(`The database ${path} is open in another process: ${advice}.`, error)
    throw error
  }
  return {
    db,
    release() {
      const [[busy] = []] = rowsOf<[busy: bigint]>(db.prepare('pragma wal_checkpoint(truncate)').values())
      if (busy !== 0n) throw storeUnusable(`The WAL of the database ${path} cannot be brought into it.`)
      for (const name of ['-wal', '-shm']) rmSync(path + name, { force: true })
      syncDirectory(dirname(path))
      db.close(true)
    },
    [Symbol.dispose]: () => db.close(true),
  }
}
