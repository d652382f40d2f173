import {
  closeSync,
  fchmodSync,
  fchownSync,
  fstatSync,
  fsyncSync,
  openSync,
  readdirSync,
  rmSync,
  statSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { openReader } from './connection.ts'
import { isLocked } from './errors.ts'

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

/** The bits of a file's mode that say who may read and write it. */
const PERMISSIONS = 0o777
const ROOT_ID = 0

/**
 * Makes an empty file that its owner alone may read and write. If root makes it, the service's own user must be able to use
 * it: the file takes the owner, group and mode of `replaced`, whose name it will get, or the owner and group of its directory
 * if there is no such file. SQLite does the same for the files beside a database.
 */
export function createFile(path: string, replaced?: string): void {
  const file = openSync(path, 'wx', 0o600)
  try {
    if (fstatSync(file).uid === ROOT_ID) giveAway(file, path, replaced)
  } finally {
    closeSync(file)
  }
}

function giveAway(file: number, path: string, replaced?: string): void {
  const old = replaced === undefined ? undefined : statSync(replaced, { throwIfNoEntry: false })
  const { uid, gid } = old ?? statSync(dirname(path))
  try {
    fchownSync(file, uid, gid)
  } catch {
    // Some file systems have no owners, and some containers have a root that may not change them: the file stays root's.
    return
  }
  if (old !== undefined) fchmodSync(file, old.mode & PERMISSIONS)
}

/** What follows the name of a database while it is being made, beside where it will be. */
const PARTIAL = '.partial-'

/** A name beside a path for what is being made there: another one each time. */
export const partialPath = (path: string): string => path + PARTIAL + crypto.randomUUID()

/**
 * Removes what was being made in a directory, for the final names that `isFinal` knows, by processes that were killed.
 * What is being made by one that runs is locked by it, and stays.
 */
export function removeLeftovers(directory: string, isFinal: (name: string) => boolean): void {
  for (const name of readdirSync(directory)) {
    const end = name.lastIndexOf(PARTIAL)
    const path = join(directory, name)
    if (end > 0 && isFinal(name.slice(0, end)) && !isInUse(path)) rmSync(path, { force: true })
  }
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
