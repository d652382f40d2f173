import { closeSync, fchmodSync, fchownSync, fstatSync, linkSync, openSync, renameSync, rmSync, statSync } from 'node:fs'
import { dirname } from 'node:path'

/** The bits of a file's mode that say who may read and write it. */
const PERMISSIONS = 0o777
const ROOT_ID = 0
/** How the system says that a file cannot get another owner (chown(2)). */
const CHOWN_REFUSALS = ['EPERM', 'EINVAL', 'ENOTSUP']

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
  } catch (error) {
    // Some file systems have no owners, and some containers have a root that may not change them: the file stays root's.
    if (!CHOWN_REFUSALS.includes(codeOf(error))) throw error
    return
  }
  if (old !== undefined) fchmodSync(file, old.mode & PERMISSIONS)
}

/**
 * Gives a file another name, unless a file has that name already. Returns whether it could. `link` refuses a name that is
 * taken, which `rename` does not. If `link` fails for another reason, the file system may have no links: then an empty file
 * takes the name first, and a kill in between leaves that empty file.
 */
export function renameToNew(from: string, to: string): boolean {
  try {
    linkSync(from, to)
  } catch (error) {
    return !isTaken(error) && renameToReserved(from, to)
  }
  rmSync(from, { force: true })
  return true
}

function renameToReserved(from: string, to: string): boolean {
  try {
    closeSync(openSync(to, 'wx', 0o600))
  } catch (error) {
    if (isTaken(error)) return false
    throw error
  }
  renameSync(from, to)
  return true
}

const isTaken = (error: unknown): boolean => codeOf(error) === 'EEXIST'

const codeOf = (error: unknown): string => (error instanceof Error && 'code' in error ? String(error.code) : '')
