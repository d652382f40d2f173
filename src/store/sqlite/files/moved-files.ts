import { readdirSync, readlinkSync } from 'node:fs'
import { fileIdentity } from './preflight.ts'

/** Links to what this process has open, one for each descriptor (proc_pid_fd(5)). */
const DESCRIPTORS = '/proc/self/fd'

/** What was opened, and whether any of the files that it has open is not at its path any more. */
export interface Watched<T> {
  readonly opened: T
  areLost(): boolean
}

/**
 * Opens a connection to a database, which must have read from it then, and watches its files: what is written with one of
 * them lost is not found again.
 *
 * This is asked after every commit, and must not look at the times of the WAL, as `lstat` does: a file whose times were
 * seen gets finer ones by its next write, which its next sync has to bring to the disk, too. That was half a sync
 * (https://docs.kernel.org/filesystems/multigrain-ts.html, Linux 6.13). Where the WAL leads is asked instead.
 */
export function watchFiles<T>(path: string, open: () => T): Watched<T> {
  const walPath = `${path}-wal`
  const others = descriptorsOf(walPath)
  const opened = open()
  const own = descriptorsOf(walPath).filter((descriptor) => !others.includes(descriptor))
  const walIdentity = identityOf(walPath, own)
  const identity = () => `${fileIdentity(path)}, ${walIdentity()}, ${fileIdentity(`${path}-shm`)}`
  const files = identity()
  return { opened, areLost: () => identity() !== files }
}

/** By the descriptor that has it open; by its path where there is no telling which one is ours, and will stay open. */
function identityOf(path: string, own: readonly string[]): () => string {
  const [descriptor] = own
  if (descriptor === undefined || own.length > 1) return () => fileIdentity(path)
  return () => linkOf(descriptor) ?? 'closed'
}

/** The descriptors that lead to a path; none where the system does not say it. */
function descriptorsOf(path: string): readonly string[] {
  try {
    return readdirSync(DESCRIPTORS)
      .map((name) => `${DESCRIPTORS}/${name}`)
      .filter((descriptor) => linkOf(descriptor) === path)
  } catch {
    return []
  }
}

/** The path of an open file, which changes when it is moved, and says so when it is deleted; nothing of one that was closed. */
function linkOf(descriptor: string): string | undefined {
  try {
    return readlinkSync(descriptor)
  } catch {
    return undefined
  }
}
