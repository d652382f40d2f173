// Tested in test/engine/sqlite/preflight.test.ts.
import * as fs from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'
import { codeOf, orUndefined } from '../../../error.ts'

/** The size of a file in bytes. 0 if there is no file. */
export const sizeOf = (path: string): number => fs.statSync(path, { throwIfNoEntry: false })?.size ?? 0

/** The most links that Linux follows (path_resolution(7)). */
const LINKS_MAX = 40

/**
 * The absolute path of a file, with links resolved, because SQLite puts its other files beside the file and not beside a
 * link. The file may be missing. A link like /dev/stdout may lead to a pipe or a deleted file, which has no path, so it keeps
 * its name.
 */
export function realPath(path: string, links = LINKS_MAX): string {
  if (fs.existsSync(path)) {
    const found = fs.statSync(path)
    const hasPath = found.isFile() || found.isDirectory()
    return (hasPath ? orUndefined(() => fs.realpathSync(path)) : undefined) ?? resolve(path)
  }
  const folder = realPath(dirname(path), links)
  const target = links > 0 ? orUndefined(() => fs.readlinkSync(path)) : undefined
  return target === undefined ? join(folder, basename(path)) : realPath(resolve(folder, target), links - 1)
}

/** The file at a path: its device and inode. A link is not its target, because SQLite looks for the WAL beside the target. */
export function fileIdentity(path: string): string {
  try {
    const file = fs.lstatSync(path, { bigint: true, throwIfNoEntry: false })
    return file === undefined ? 'nothing' : `${file.dev} ${file.ino}`
  } catch {
    return 'out of reach'
  }
}

/** The bits of a file's mode that let other users read and write it. */
const OPEN_TO_OTHERS = 0o066

/** The files of the database that other users may read or write. */
export const filesOpenToOthers = (path: string): string[] =>
  [path, `${path}-wal`, `${path}-shm`].filter((file) => {
    const mode = fs.statSync(file, { throwIfNoEntry: false })?.mode ?? 0
    return (mode & OPEN_TO_OTHERS) !== 0
  })

/** Opens a file, passes its descriptor to `use`, and closes it. Only the owner of a new file may read and write it. */
export function withFile<T>(path: string, flags: 'r' | 'wx', use: (file: number) => T): T {
  const file = fs.openSync(path, flags, 0o600)
  try {
    return use(file)
  } finally {
    fs.closeSync(file)
  }
}

/** Makes the entries of a directory durable: new names, and names that are gone. */
export const syncDirectory = (path: string): void => withFile(path, 'r', fs.fsyncSync)

const PERMISSIONS = 0o777
const ROOT_ID = 0
/** The errors of a system that cannot change a file's owner (chown(2)). */
const CHOWN_REFUSALS = ['EPERM', 'EINVAL', 'ENOTSUP']

/**
 * Creates an empty file that only its owner may read and write. It gets the group and mode of `replaced`, the file that it will
 * replace, and its owner if root creates it. If there is none, a file of root gets the owner and group of its directory, because
 * the service's own user must be able to use it. SQLite does the same for the files beside a database.
 */
export const createFile = (path: string, replaced?: string): void =>
  withFile(path, 'wx', (file) => {
    const { uid: own } = fs.fstatSync(file)
    const old = replaced === undefined ? undefined : fs.statSync(replaced, { throwIfNoEntry: false })
    if (old === undefined && own !== ROOT_ID) return
    const { uid, gid } = old ?? fs.statSync(dirname(path))
    try {
      fs.fchownSync(file, own === ROOT_ID ? uid : own, gid)
      if (old !== undefined) fs.fchmodSync(file, old.mode & PERMISSIONS)
    } catch (error) {
      // Some file systems have no owners, and who is not root, or is root in some containers, may not change them.
      if (CHOWN_REFUSALS.includes(codeOf(error))) return
      fs.rmSync(path, { force: true })
      throw error
    }
  })
