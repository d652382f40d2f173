import { lstatSync, readdirSync, readlinkSync, type Stats } from 'node:fs'
import { dirname } from 'node:path'
import { orUndefined } from '../../../error.ts'
import { fileIdentity } from './file-system.ts'

/** Links to what this process has open, one for each descriptor (proc_pid_fd(5)). */
const DESCRIPTORS = '/proc/self/fd'

/** Two changes of a directory with at least this time between them have different times on every file system. */
export const SETTLED_MS = 3000

/**
 * Opens a connection to a database and watches its files, because writes to a file that was moved would be lost. `open` must
 * read from the database, so that SQLite opens all of them.
 *
 * The store asks after every commit. A file that comes, goes or gets another name changes the ctime of its directory, so one
 * `lstat` of the directory is enough once its last change is old. In a process that has just slept that takes 8 µs, and to look
 * at all files takes 26 µs.
 *
 * This must not `lstat` the WAL: since Linux 6.13 that makes the next write store a finer mtime, which the next sync must
 * flush too (+50 % per commit, https://docs.kernel.org/filesystems/multigrain-ts.html). It reads the link of the WAL's
 * descriptor instead.
 */
export function watchFiles<T>(path: string, open: () => T, nowMs = Date.now) {
  const walPath = `${path}-wal`
  const others = descriptorsOf(walPath)
  const opened = open()
  const own = descriptorsOf(walPath).filter((descriptor) => !others.includes(descriptor))
  const [descriptor] = own
  // If none or several descriptors are new, none is known to be ours. Then the WAL is identified as the other files are.
  const walIdentity = () =>
    descriptor === undefined || own.length > 1 ? fileIdentity(walPath) : readlinkSync(descriptor)
  const identity = () => `${fileIdentity(path)}, ${walIdentity()}, ${fileIdentity(`${path}-shm`)}`
  const files = identity()
  const folder = dirname(path)
  /** The directory, as it was when all files were there and its last change was old. */
  let settled: Pick<Stats, 'ctimeMs' | 'ino' | 'dev'> | undefined

  /** Whether one of the files is not at its path any more. */
  const areMoved = (): boolean => {
    try {
      const { ctimeMs, ino, dev } = lstatSync(folder)
      if (ctimeMs === settled?.ctimeMs && ino === settled.ino && dev === settled.dev) return false
      if (identity() !== files) return true
      settled = nowMs() - ctimeMs > SETTLED_MS ? { ctimeMs, ino, dev } : undefined
      return false
    } catch {
      // The directory is out of reach, or the descriptor is closed.
      return true
    }
  }
  return { opened, areMoved }
}

/** The error of a database whose file is not at its path any more. */
export const movedAway = (path: string) => new Error(`${path}, or a file beside it, was moved, replaced or deleted`)

/** The descriptors that have a path open, or none if the system does not list them. A link shows the current path of its file. */
function descriptorsOf(path: string): readonly string[] {
  const descriptors = orUndefined(() => readdirSync(DESCRIPTORS).map((name) => `${DESCRIPTORS}/${name}`)) ?? []
  // A descriptor may be closed meanwhile.
  return descriptors.filter((descriptor) => orUndefined(() => readlinkSync(descriptor)) === path)
}
