import type { Version } from '../../../domain/store.ts'
import type { UserId } from '../../../domain/token.ts'
import { type Call, CHANGES } from '../writes.ts'
import { awaitVersions, type LastCommit, versionsOf } from './last-commit.ts'
import { trackPlants } from './plants-of-users.ts'
import type { CommitVersion } from './wal-index.ts'

/** The versions of plants and tokens. */
export type Versions = ReturnType<typeof trackVersions>

/**
 * Tells whether data that was read before is still current. A commit of this store changes what its writes say. A commit of
 * another process, which shows in the commit version, may have changed anything.
 */
export function trackVersions(commitVersion: () => CommitVersion, lastCommit: LastCommit) {
  let latest: Version = 0
  let ofTokens = latest
  const ofPlants = trackPlants()
  /** The commit version for which all this holds. */
  let known = commitVersion()
  let inFlight: readonly Call[] = []

  const changeAll = () => {
    ofTokens = ++latest
    ofPlants.changeAll(latest)
  }
  const recordGroup = (group: readonly Call[]) => {
    latest++
    for (const call of group) {
      const [name] = call
      if (name === 'createPlant') ofPlants.recordCreate(call[1], call[2], latest)
      else if (name === 'deletePlant') ofPlants.recordDelete(call[1], latest)
      else if (CHANGES[name] === 'tokens') ofTokens = latest
      else if (CHANGES[name] === 'everything') changeAll()
    }
    if (ofPlants.areTooMany()) changeAll()
  }
  /** Records our group if its commit follows the known version. */
  const advance = (before: CommitVersion, after: CommitVersion) => {
    if (known === after) return
    if (known === before) recordGroup(inFlight)
    else changeAll()
    known = after
  }

  /** Whether all changes up to now are known. */
  const isUpToDate = (): boolean => {
    let now = commitVersion()
    if (now === known) return true
    if (inFlight.length > 0) {
      // Our group is committed and not reported yet, or another process has committed before it.
      const [before, after] = awaitVersions(lastCommit, known)
      now = commitVersion()
      if (known !== before || now !== after) return false
      advance(before, after)
      return true
    }
    changeAll()
    known = now
    return true
  }

  return {
    plants: (user: UserId): Version | undefined => (isUpToDate() ? ofPlants.version(user) : undefined),
    /** Whether the only changes of the user's plants since a version are creates with larger ids. */
    hasOnlyGrown: (user: UserId, since: Version, above: bigint): boolean =>
      isUpToDate() && ofPlants.hasOnlyGrown(user, since, above),
    tokens: (): Version | undefined => (isUpToDate() ? ofTokens : undefined),
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
