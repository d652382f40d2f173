import type { Version } from '../../../domain/store.ts'
import type { UserId } from '../../../domain/token.ts'
import { type Call, CHANGES } from '../writes.ts'
import { awaitStamps, type LastCommit, stampsOf } from './last-commit.ts'
import type { Stamp } from './wal-index.ts'

/** Users whose last change is known by itself. Past this many all count as changed, and it begins anew. */
export const CHANGED_USERS_MAX = 65_536

/** Of the latest creates of a user so many groups are known one by one. */
const KNOWN_CREATES_MAX = 4

/** What is known of a user's plants: all that happened to them after `knownFrom` is creates, and these are they. */
interface PlantsOfUser {
  version: Version
  knownFrom: Version
  readonly creates: { readonly version: Version; lowestId: bigint }[]
}

/** What has changed, and what has not. */
export type Versions = ReturnType<typeof trackVersions>

/**
 * Says whether what was read before is still true. A commit that this store's own writer made changes what its writes
 * say; one that anybody else made, which the stamp tells, may have changed anything.
 */
export function trackVersions(stamp: () => Stamp, lastCommit: LastCommit) {
  let latest: Version = 0
  /** The last change of everything, and what changed since. */
  let ofAll = latest
  let ofTokens = latest
  const ofPlants = new Map<UserId, PlantsOfUser>()
  /** The stamp for which this holds. */
  let known = stamp()
  let inFlight: readonly Call[] = []

  const forgetAll = () => {
    ofAll = ofTokens = ++latest
    ofPlants.clear()
  }
  const note = (group: readonly Call[]) => {
    latest++
    for (const call of group) {
      const [name] = call
      if (name === 'createPlant') noteCreate(call[1], call[2])
      else if (name === 'deletePlant') ofPlants.set(call[1], { version: latest, knownFrom: latest, creates: [] })
      else if (CHANGES[name] === 'tokens') ofTokens = latest
      else if (CHANGES[name] === 'everything') forgetAll()
    }
    if (ofPlants.size > CHANGED_USERS_MAX) forgetAll()
  }
  const noteCreate = (user: UserId, id: bigint) => {
    const plants = ofPlants.get(user) ?? { version: ofAll, knownFrom: ofAll, creates: [] }
    const last = plants.creates.at(-1)
    if (last?.version === latest) {
      if (id < last.lowestId) last.lowestId = id
      return
    }
    plants.creates.push({ version: latest, lowestId: id })
    if (plants.creates.length > KNOWN_CREATES_MAX) plants.knownFrom = plants.creates.shift()?.version ?? latest
    plants.version = latest
    ofPlants.set(user, plants)
  }
  /** Takes a commit of ours into account, if nobody else's came before it. */
  const advance = (before: Stamp, after: Stamp) => {
    if (known === after) return
    if (known === before) note(inFlight)
    else forgetAll()
    known = after
  }

  /** Whether it is known what has changed until now. */
  const isUpToDate = (): boolean => {
    let now = stamp()
    if (now === known) return true
    if (inFlight.length > 0) {
      // Ours is done, but not reported yet; or not done, and somebody else's is; or nobody says which in time.
      const [before, after] = awaitStamps(lastCommit, known)
      now = stamp()
      if (known !== before || now !== after) return false
      advance(before, after)
      return true
    }
    forgetAll()
    known = now
    return true
  }

  return {
    plants: (user: UserId): Version | undefined => (isUpToDate() ? (ofPlants.get(user)?.version ?? ofAll) : undefined),
    /** Whether all that happened to the user's plants after a version is that some with larger ids were created. */
    hasOnlyGrown(user: UserId, since: Version, above: bigint): boolean {
      if (!isUpToDate()) return false
      const { knownFrom, creates } = ofPlants.get(user) ?? { knownFrom: ofAll, creates: [] }
      return since >= knownFrom && creates.every(({ version, lowestId }) => version <= since || lowestId > above)
    },
    tokens: (): Version | undefined => (isUpToDate() ? ofTokens : undefined),
    /** A group is about to be sent to the writer. */
    begin(group: readonly Call[]): void {
      inFlight = group
    },
    /** It was committed, with the stamps of the last commit around it, or it failed. */
    end({ isCommitted }: { readonly isCommitted: boolean }): void {
      if (isCommitted) advance(...stampsOf(lastCommit))
      inFlight = []
    },
  }
}
