import { lstatSync, readdirSync, readlinkSync, type Stats } from 'node:fs'
import { dirname } from 'node:path'
import { fileIdentity } from './file-system.ts'

/** Links to what this process has open, one for each descriptor (proc_pid_fd(5)). */
const DESCRIPTORS = '/proc/self/fd'

/** Two changes of a directory with at least this time between them have different times on every file system. */
const SETTLED_MS = 3000

/**
 * Opens a connection to a database and watches its files, because writes to a file that was moved would be lost. `open` must
 * read from the database, so that SQLite opens all of them.
 *
 * The store asks after every commit. A file that comes, goes or gets another name changes the ctime of its directory, so one
 * `lstat` of the directory is enough once its last change is old. In a process that has just slept that takes 8 µs, and to look at
 * all files takes 26 µs.
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
  const walIdentity = identityOf(walPath, own)
  const identity = () => `${fileIdentity(path)}, ${walIdentity()}, ${fileIdentity(`${path}-shm`)}`
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

/** Identifies the WAL by our descriptor of it. If several descriptors are new, it takes the identity of the database instead. */
function identityOf(path: string, own: readonly string[]): () => string {
  const [descriptor] = own
  if (descriptor === undefined || own.length > 1) return () => fileIdentity(path)
  return () => linkOf(descriptor) ?? 'closed'
}

/** The descriptors that have a path open. None if the system does not list them. */
function descriptorsOf(path: string): readonly string[] {
  try {
    return readdirSync(DESCRIPTORS)
      .map((name) => `${DESCRIPTORS}/${name}`)
      .filter((descriptor) => linkOf(descriptor) === path)
  } catch {
    return []
  }
}

/** The current path of an open file. It changes when the file is moved or deleted. `undefined` once the file is closed. */
function linkOf(descriptor: string): string | undefined {
  try {
    return readlinkSync(descriptor)
  } catch {
    return undefined
  }
}
