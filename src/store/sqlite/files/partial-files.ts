import { closeSync, fsyncSync, lstatSync, openSync, readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { openReader } from '../connection.ts'
import { isLocked } from '../errors.ts'

/** The endings of the files that SQLite keeps beside a database. */
export const SIDE_FILES = ['-wal', '-shm', '-journal'] as const

/** Makes the entries of a directory durable: new names, and names that are gone. */
export function syncDirectory(path: string): void {
  const directory = openSync(path, 'r')
  try {
    fsyncSync(directory)
  } finally {
    closeSync(directory)
  }
}

/** The name of an unfinished database is its final name, this, and a UUID. */
const PARTIAL = '.partial-'

/** A new name, beside this path, for a database that is not finished yet. */
export const partialPath = (path: string): string => path + PARTIAL + crypto.randomUUID()

/** Matches the names that `partialPath` gives. The group is the final name. */
const PARTIAL_NAME = new RegExp(`^(.+)\\${PARTIAL}[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$`, 's')

/**
 * Removes the unfinished databases that killed processes of this program left in a directory, if `isFinal` knows their final
 * names. A live process has locked the database that it makes: that one stays.
 */
export function removeLeftovers(directory: string, isFinal: (name: string) => boolean): void {
  for (const name of readdirSync(directory)) {
    const [, final] = PARTIAL_NAME.exec(name) ?? []
    if (final !== undefined && isFinal(final)) removeLeftover(join(directory, name))
  }
}

function removeLeftover(path: string): void {
  const found = lstatSync(path, { throwIfNoEntry: false })
  if (found?.isFile() !== true) return
  // A file that also has its final name is finished, and another process may use it.
  if (found.nlink > 1 || !isInUse(path)) rmSync(path, { force: true })
}

/** Whether another process has locked a database. A file that is no database is not in use. */
function isInUse(path: string): boolean {
  try {
    const db = openReader(path, { busyTimeoutMs: 0 })
    try {
      db.prepare('select 1 from sqlite_schema').values()
      return false
    } finally {
      db.close(true)
    }
  } catch (error) {
    return isLocked(error)
  }
}
