import { closeSync, fsyncSync, lstatSync, openSync, readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { openReader } from '../connection.ts'
import { isLocked } from '../errors.ts'

/** What follows the name of a database in those of the files that SQLite has beside it. */
export const BESIDE = ['-wal', '-shm', '-journal'] as const

/** Makes the names in a directory durable: those that are new, and that others are gone. */
export function syncDirectory(path: string): void {
  const directory = openSync(path, 'r')
  try {
    fsyncSync(directory)
  } finally {
    closeSync(directory)
  }
}

/** What follows the name of a database while it is being made, beside where it will be. */
const PARTIAL = '.partial-'

/** A name beside a path for what is being made there: another one each time. */
export const partialPath = (path: string): string => path + PARTIAL + crypto.randomUUID()

/** A name that `partialPath` gives, and the final name in it. */
const PARTIAL_NAME = new RegExp(`^(.+)\\${PARTIAL}[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$`, 's')

/**
 * Removes the files that killed processes of this program were making in a directory, for the final names that `isFinal` knows.
 * A process that runs has locked the file that it makes, which stays.
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
  // A file with its final name, too, is finished: another process may use it by that name.
  if (found.nlink > 1 || !isInUse(path)) rmSync(path, { force: true })
}

/** Whether another process has locked a database. A file that is none, or none any more, nobody has. */
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
