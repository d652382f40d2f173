import { constants, type Database } from 'bun:sqlite'
import { linkSync, lstatSync, readdirSync, renameSync, rmSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { codeOf, EngineError } from '../../errors.ts'
import { LOCK_MAX_WAIT_MS } from '../../group-queue.ts'
import { openDatabase } from '../driver.ts'
import { createFile, syncDirectory, withFile } from '../files/file-system.ts'
import { isOpenElsewhere } from '../files/lock.ts'
import { PARTIAL, PARTIAL_NAME } from '../files/other-names.ts'

/** A database that is being made beside its final path. `dispose` closes it, and deletes it unless it has its final path. */
export type NewDatabase = ReturnType<typeof createDatabase>

/**
 * Creates a database that will get the path `target`. It has the permissions of the file that it replaces. It is locked until
 * it is closed, so that other processes know that it is being made. Removes what killed processes left of the same target, be it
 * of another time.
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
    /** Gives it its final path, durably. Unless it replaces a file, it throws as `renameToNew` does. */
    place(replaces: boolean): void {
      if (replaces) renameSync(path, target)
      else renameToNew(path, target)
      try {
        syncDirectory(dirname(target))
      } catch (cause) {
        const reason = cause instanceof Error ? cause.message : cause
        const problem = 'a loss of power may undo that, because its directory could not be synced'
        throw new EngineError('file_unusable', { message: `${target} is there, but ${problem}: ${reason}.`, cause })
      }
    },
    [Symbol.dispose]: () => made.dispose(),
  }
}

/**
 * Makes a finished file a database for servers, which then need not have it alone at their start. This must be the last
 * statement, because the next one would make a WAL.
 */
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
 * Renames a file. Throws an error with the code `EEXIST` if a file has the new name, which `link` refuses and `rename` would
 * replace. If `link` fails for another reason, the file system may have no links. Then an empty file takes the name first, and a
 * kill in between leaves that empty file.
 */
export function renameToNew(from: string, to: string): void {
  try {
    linkSync(from, to)
  } catch (error) {
    if (codeOf(error) === 'EEXIST') throw error
    withFile(to, 'wx', () => {})
    renameSync(from, to)
  }
  rmSync(from, { force: true })
}

/** The name of a file, with a dash instead of the time if `backupIn` gave it a time. */
export const withoutTime = (name: string): string => name.replace(/\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d\.\d{3}Z\.db$/, '-')

/** A file of less than this age may have a live process that has not locked it yet. */
const YOUNG_MS = 10_000

/** Removes the unfinished databases of the same target, be it of another time, that killed processes of this program left. */
function removeLeftovers(target: string): void {
  for (const name of readdirSync(dirname(target))) {
    const [, final = ''] = PARTIAL_NAME.exec(name) ?? []
    const path = join(dirname(target), name)
    if (withoutTime(final) === withoutTime(basename(target)) && isLeftover(path)) rmSync(path, { force: true })
  }
}

/** Whether no process makes a database in this file any more. A live process has locked the file, unless the file is young. */
function isLeftover(path: string): boolean {
  const found = lstatSync(path, { throwIfNoEntry: false })
  if (found?.isFile() !== true) return false
  // A file that also has its final name is finished, and another process may use it.
  return found.nlink > 1 || (Date.now() - found.mtimeMs >= YOUNG_MS && !isOpenElsewhere(path))
}
