import { readdirSync, readlinkSync } from 'node:fs'
import { fileIdentity } from './file-system.ts'

/** Links to what this process has open, one for each descriptor (proc_pid_fd(5)). */
const DESCRIPTORS = '/proc/self/fd'

/**
 * Opens a connection to a database and watches its files, because writes to a file that was moved would be lost. `open` must
 * read from the database, so that SQLite opens all of them.
 *
 * The store asks after every commit. So this must not `lstat` the WAL: since Linux 6.13 that makes the next write store a
 * finer mtime, which the next sync must flush too (+50 % per commit,
 * https://docs.kernel.org/filesystems/multigrain-ts.html). It reads the link of the WAL's descriptor instead.
 */
export function watchFiles<T>(path: string, open: () => T) {
  const walPath = `${path}-wal`
  const others = descriptorsOf(walPath)
  const opened = open()
  const own = descriptorsOf(walPath).filter((descriptor) => !others.includes(descriptor))
  const walIdentity = identityOf(walPath, own)
  const identity = () => `${fileIdentity(path)}, ${walIdentity()}, ${fileIdentity(`${path}-shm`)}`
  const files = identity()
  /** Whether one of the files is not at its path any more. */
  const areMoved = (): boolean => identity() !== files
  return { opened, areMoved }
}

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
