// Tested in test/cli/transcripts/databases.txt.
import { constants, type Database } from 'bun:sqlite'
import { linkSync, renameSync, rmSync } from 'node:fs'
import { dirname } from 'node:path'
import { AppError, codeOf } from '../../../error.ts'
import { LOCK_MAX_WAIT_MS } from '../../group-queue.ts'
import { openDatabase } from '../driver.ts'
import { removeMark } from './damage-mark.ts'
import { createFile, syncDirectory } from './file-system.ts'
import { lockEmpty } from './lock.ts'
import { PARTIAL, removeLeftovers } from './other-names.ts'

/**
 * Makes a database for servers at a path where no file is, or an empty one. `fill` makes its content. Returns `false` if another
 * process was faster. The caller syncs the directory.
 */
export function makeDatabase(path: string, fill: (db: Database) => void): boolean {
  using made = createDatabase(path)
  fill(made.db)
  made.db.run(ENTER_WAL_MODE)
  return renameToNew(made.path, path, true)
}

/** A database that is being made beside its final path. `dispose` closes it, and deletes it unless it has its final path. */
export type NewDatabase = ReturnType<typeof createDatabase>

/**
 * Creates a database that will get the path `target`. It has the permissions of the file that it replaces. It is locked until
 * it is closed, so that other processes know that it is being made. Removes what killed processes left of the same target,
 * backups with other times in their names included.
 */
export function createDatabase(target: string) {
  removeLeftovers(target)
  const path = target + PARTIAL + crypto.randomUUID()
  createFile(path, target)
  using stack = new DisposableStack()
  stack.defer(() => rmSync(path, { force: true }))
  const db = stack.use(openUnfinished(path))
  const made = stack.move()
  return {
    db,
    path,
    /** Gives it its final path, durably. Returns `false` if it replaces no file and `renameToNew` finds one. */
    publish(replaces: boolean): boolean {
      if (replaces) renameSync(path, target)
      else if (!renameToNew(path, target)) return false
      removeMark(target)
      try {
        syncDirectory(dirname(target))
        return true
      } catch (cause) {
        const reason = cause instanceof Error ? cause.message : cause
        const problem = 'a loss of power may undo that, because its directory could not be synced'
        throw new AppError('file_unusable', { message: `${target} is there, but ${problem}: ${reason}.`, cause })
      }
    },
    [Symbol.dispose]: () => made.dispose(),
  }
}

/** Makes a finished file a database for servers. This must be the last statement, because the next one would make a WAL. */
export const ENTER_WAL_MODE = 'pragma main.journal_mode = wal'

/** An unfinished file is deleted, so it needs no journal on disk. Commits are synced. A database can be attached by a URI. */
function openUnfinished(path: string): Database {
  const db = openDatabase(path, constants.SQLITE_OPEN_READWRITE | constants.SQLITE_OPEN_URI)
  db.run(`pragma busy_timeout = ${LOCK_MAX_WAIT_MS}`)
  // Only the main database: a database that is attached later keeps its own modes.
  db.run('pragma main.locking_mode = exclusive')
  db.run('pragma main.journal_mode = memory')
  db.run('pragma main.synchronous = full')
  db.run('pragma fullfsync = 1')
  return db
}

/**
 * Renames a file. Returns `false` if a file has the new name, which `link` refuses and `rename` would replace. An empty one is
 * replaced with `replacesEmpty`. The caller has locked it, so no other process can put a database there before the rename.
 */
export function renameToNew(from: string, to: string, replacesEmpty = false): boolean {
  try {
    linkSync(from, to)
    rmSync(from, { force: true })
    return true
  } catch (error) {
    if (codeOf(error) === 'EEXIST' && !replacesEmpty) return false
    // The file system may have no links. Then an empty file takes the name first, and a kill in between leaves that.
    if (codeOf(error) !== 'EEXIST' && !isCreated(to) && !replacesEmpty) return false
    using empty = lockEmpty(to)
    if (empty !== undefined) renameSync(from, to)
    return empty !== undefined
  }
}

/** Creates an empty file, unless there is one. */
function isCreated(path: string): boolean {
  try {
    createFile(path)
    return true
  } catch (error) {
    if (codeOf(error) !== 'EEXIST') throw error
    return false
  }
}
