import { closeSync, fchmodSync, fchownSync, fstatSync, linkSync, openSync, renameSync, rmSync, statSync } from 'node:fs'
import { dirname } from 'node:path'

/** The permission bits of a file's mode. */
const PERMISSIONS = 0o777
const ROOT_ID = 0
/** The errors of a system that cannot change a file's owner (chown(2)). */
const CHOWN_REFUSALS = ['EPERM', 'EINVAL', 'ENOTSUP']

/**
 * Creates an empty file that only its owner may read and write. If root creates it, the service's own user must be able to use
 * it. So it gets the owner, group and mode of `replaced`, the file that it will replace. If there is none, it gets the owner and
 * group of its directory. SQLite does the same for the files beside a database.
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
    // Some file systems have no owners, and in some containers root may not change them. The file stays root's.
    if (!CHOWN_REFUSALS.includes(codeOf(error))) throw error
    return
  }
  if (old !== undefined) fchmodSync(file, old.mode & PERMISSIONS)
}

/**
 * Renames a file, unless a file has the new name already. Returns whether it did. `link` refuses a name that is taken, but
 * `rename` does not. If `link` fails for another reason, the file system may have no links. Then an empty file takes the name
 * first, and a kill in between leaves that empty file.
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
