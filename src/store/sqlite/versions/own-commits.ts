import type { Database } from 'bun:sqlite'
import { announceCommit, type LastCommit, recordCommit, UNKNOWN_VERSION } from './last-commit.ts'
import type { WalIndex } from './wal-index.ts'

/**
 * Records the versions around each commit of a connection. Once the connection has released its lock, another process may
 * commit before the version is read. Then it records `UNKNOWN_VERSION`, which makes everything count as changed.
 */
export function watchOwnCommits(
  writer: Database,
  walIndex: Pick<WalIndex, 'version' | 'commits'>,
  lastCommit: LastCommit,
) {
  const totalChanges = writer.prepare('select total_changes()')
  /** The rows that this connection has changed so far. */
  const countChanges = (): unknown => totalChanges.values()[0]?.[0]
  let before = UNKNOWN_VERSION
  let commitsBefore = 0
  let changesBefore: unknown
  let ownCommits = 0

  return {
    /** A transaction of the connection has the lock. */
    begin(): void {
      before = walIndex.version()
      commitsBefore = walIndex.commits()
      changesBefore = countChanges()
    },
    /** All writes of the transaction are done. `changesNoRow`: it has changed the file, but no row. */
    end({ changesNoRow = false } = {}): void {
      // SQLite writes no commit for a transaction that changed nothing.
      ownCommits = countChanges() === changesBefore && !changesNoRow ? 0 : 1
      announceCommit(lastCommit, before)
    },
    /** The transaction was committed. Until this is recorded, nobody can tell its commit from one of another process. */
    recordCommitted(): void {
      const after = walIndex.version()
      const commits = (walIndex.commits() - commitsBefore) >>> 0
      if (commits === ownCommits) recordCommit(lastCommit, before, after)
      else this.recordFailed()
    },
    /** The transaction failed, or its outcome is unknown. */
    recordFailed(): void {
      recordCommit(lastCommit, UNKNOWN_VERSION, UNKNOWN_VERSION)
    },
  }
}
