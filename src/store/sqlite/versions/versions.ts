import type { Version } from '../../../domain/store.ts'
import type { UserId } from '../../../domain/token.ts'
import type { Call } from '../writing/writes.ts'
import { trackChanges } from './changes.ts'
import { awaitVersions, type LastCommit, versionsOf } from './last-commit.ts'
import type { CommitVersion } from './wal-index.ts'

/** The versions of plants and tokens. */
export type Versions = ReturnType<typeof trackVersions>

/**
 * Tells whether data that was read before is still current. A commit of this store changes what its writes say. A commit of
 * another process, which shows in the commit version, may have changed anything.
 */
export function trackVersions(commitVersion: () => CommitVersion, lastCommit: LastCommit) {
  const changes = trackChanges()
  /** The commit version for which all this holds. */
  let known = commitVersion()
  let inFlight: readonly Call[] = []

  /** Records our group if its commit follows the known version. */
  const advance = (before: CommitVersion, after: CommitVersion) => {
    if (known === after) return
    if (known === before) changes.record(inFlight)
    else changes.changeAll()
    known = after
  }

  /** Whether all changes up to now are known. */
  const isUpToDate = (): boolean => {
    const now = commitVersion()
    if (now === known) return true
    if (inFlight.length === 0) {
      changes.changeAll()
      known = now
      return true
    }
    // Our group is committed and not reported yet, or another process has committed before it.
    const [before, after] = awaitVersions(lastCommit, known)
    if (known !== before || commitVersion() !== after) return false
    advance(before, after)
    return true
  }

  return {
    plants: (user: UserId): Version | undefined => (isUpToDate() ? changes.ofPlants.version(user) : undefined),
    /** Whether the only changes of the user's plants since a version are creates with larger ids. */
    hasOnlyGrown: (user: UserId, since: Version, above: bigint): boolean =>
      isUpToDate() && changes.ofPlants.hasOnlyGrown(user, since, above),
    tokens: (): Version | undefined => (isUpToDate() ? changes.ofTokens() : undefined),
    /** A group is about to be sent to the writer. */
    begin(group: readonly Call[]): void {
      inFlight = group
    },
    /** The group was committed, with the versions of the last commit around it, or it failed. */
    end({ isCommitted }: { readonly isCommitted: boolean }): void {
      if (isCommitted) advance(...versionsOf(lastCommit))
      inFlight = []
    },
  }
}
