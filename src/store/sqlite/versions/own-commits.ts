import type { Database } from 'bun:sqlite'
import { announceCommit, type LastCommit, NO_STAMP, noteCommit } from './last-commit.ts'
import type { WalIndex } from './wal-index.ts'

/**
 * Notes the stamps around each commit of a connection. As soon as its lock is free somebody else may commit, before the
 * stamp is read. Where that may have been so, what is noted is no stamp: then all counts as changed.
 */
export function watchOwnCommits(
  writer: Database,
  walIndex: Pick<WalIndex, 'stamp' | 'commits'>,
  lastCommit: LastCommit,
) {
  // Rows of this connection.
  const totalChanges = writer.prepare('select total_changes()')
  const countChanges = (): unknown => totalChanges.values()[0]?.[0]
  let before = NO_STAMP
  let commitsBefore = 0
  let changesBefore: unknown
  let own = 0

  return {
    /** A transaction of the connection has the lock. */
    begin(): void {
      before = walIndex.stamp()
      commitsBefore = walIndex.commits()
      changesBefore = countChanges()
    },
    /** All its writes were done. `changesNoRow` where it has written something else than rows, which is not counted. */
    end({ changesNoRow = false } = {}): void {
      // Whoever changes nothing writes no commit.
      own = countChanges() === changesBefore && !changesNoRow ? 0 : 1
      announceCommit(lastCommit, before)
    },
    /** It was committed just now: until this is noted, nobody can tell the commit from another's. */
    noteCommitted(): void {
      const after = walIndex.stamp()
      const commits = (walIndex.commits() - commitsBefore) >>> 0
      if (commits === own) noteCommit(lastCommit, before, after)
      else this.noteFailed()
    },
    /** It was not committed, or nobody knows: any commit since may be another's. */
    noteFailed(): void {
      noteCommit(lastCommit, NO_STAMP, NO_STAMP)
    },
  }
}
