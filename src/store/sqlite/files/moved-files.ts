import { lstatSync, type Stats } from 'node:fs'
import { dirname } from 'node:path'
import { fileIdentity } from './file-system.ts'

/** Two changes of a directory with at least this time between them have different times on every file system. */
const SETTLED_MS = 3000

/**
 * Opens a connection to a database and watches its files, because writes to a file that was moved would be lost. `open` must
 * read from the database, so that SQLite opens all of them.
 *
 * The store asks after every commit. A file that comes, goes or gets another name changes the ctime of its directory, so one
 * `lstat` of the directory is enough once its last change is old. A look at the WAL itself would be expensive: since Linux 6.13
 * it makes the next write store a finer mtime, which the next sync must flush too (+50 % per commit,
 * https://docs.kernel.org/filesystems/multigrain-ts.html).
 */
export function watchFiles<T>(path: string, open: () => T, nowMs = Date.now) {
  const opened = open()
  const identity = () => [path, `${path}-wal`, `${path}-shm`].map(fileIdentity).join()
  const files = identity()
  const folder = dirname(path)
  /** The directory, as it was when all files were there and its last change was old. */
  let settled: Stats | undefined

  /** Whether one of the files is not at its path any more. */
  const areMoved = (): boolean => {
    const found = statusOf(folder)
    if (found !== undefined && settled !== undefined && isUnchanged(found, settled)) return false
    if (identity() !== files) return true
    settled = found !== undefined && nowMs() - found.ctimeMs > SETTLED_MS ? found : undefined
    return false
  }
  return { opened, areMoved }
}

function statusOf(folder: string): Stats | undefined {
  try {
    return lstatSync(folder)
  } catch {
    return undefined
  }
}

const isUnchanged = (now: Stats, before: Stats): boolean =>
  now.ctimeMs === before.ctimeMs && now.ino === before.ino && now.dev === before.dev

/** The error of a database whose file is not at its path any more. */
export const movedAway = (path: string) => new Error(`${path}, or a file beside it, was moved, replaced or deleted`)
