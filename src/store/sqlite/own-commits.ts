import type { Database } from 'bun:sqlite'
import { type LastCommit, noteCommit } from './revisions.ts'
import type { Stamp, WalIndex } from './wal-index.ts'

/**
 * Notes the stamps around each commit of a connection. As soon as its lock is free somebody else may commit, before the
 * stamp is read. Where that may have been so, what is noted is no stamp: then all counts as changed.
 */
export function watchOwnCommits(writer: Database, walIndex: Pick<WalIndex, 'stamp'>, lastCommit: LastCommit) {
  // Commits of others change it, and those of this connection do not (https://sqlite.org/pragma.html#pragma_data_version).
  const version = writer.prepare('pragma data_version')
  const readVersion = (): unknown => version.values()[0]?.[0]
  let before: Stamp = Number.NaN
  let versionBefore: unknown

  /** Whether nobody else has committed since the transaction began. */
  const wasAlone = (): boolean => {
    try {
      return readVersion() === versionBefore
    } catch {
      // Whatever is in the way, the commit is done.
      return false
    }
  }

  return {
    /** A transaction of the connection has the lock. */
    begin(): void {
      before = walIndex.stamp()
      versionBefore = readVersion()
    },
    /** It was committed. */
    end(): void {
      const after = walIndex.stamp()
      if (wasAlone()) noteCommit(lastCommit, before, after)
      else noteCommit(lastCommit, Number.NaN, Number.NaN)
    },
  }
}
