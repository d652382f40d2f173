import type { Version } from '../../../domain/store.ts'
import type { UserId } from '../../../domain/token.ts'
import { type Call, CHANGES } from '../writing/writes.ts'

/** The number of users whose last change is known one by one. With one more, the plants of all users count as changed. */
export const CHANGED_USERS_MAX = 65_536

/** The number of groups with creates that are known one by one, for each user. */
const KNOWN_CREATES_MAX = 4

/** Since `knownFrom` the only changes of a user's plants are `creates`. */
interface PlantsOfUser {
  version: Version
  knownFrom: Version
  readonly creates: { readonly version: Version; lowestId: bigint }[]
}

/** The latest changes of tokens and plants. Each group of writes is a version. */
export function trackChanges() {
  let latest: Version = 0
  let ofTokens = latest
  const ofPlants = trackPlants()

  const changeAll = () => {
    ofTokens = ++latest
    ofPlants.changeAll(latest)
  }

  return {
    ofPlants,
    ofTokens: (): Version => ofTokens,
    /** Everything may have changed. */
    changeAll,
    /** The writes of a group were committed. */
    record(group: readonly Call[]): void {
      latest++
      for (const call of group) {
        const [name] = call
        if (name === 'createPlant') ofPlants.recordCreate(call[1], call[2], latest)
        else if (name === 'deletePlant') ofPlants.recordDelete(call[1], latest)
        else if (CHANGES[name] === 'tokens') ofTokens = latest
        else if (CHANGES[name] === 'everything') changeAll()
      }
      if (ofPlants.areTooMany()) changeAll()
    },
  }
}

/** The version of the plants of each user. */
function trackPlants() {
  let ofAll: Version = 0
  const changed = new Map<UserId, PlantsOfUser>()

  return {
    version: (user: UserId): Version => changed.get(user)?.version ?? ofAll,
    hasOnlyGrown(user: UserId, since: Version, above: bigint): boolean {
      const { knownFrom, creates } = changed.get(user) ?? { knownFrom: ofAll, creates: [] }
      return since >= knownFrom && creates.every(({ version, lowestId }) => version <= since || lowestId > above)
    },
    recordCreate(user: UserId, id: bigint, version: Version): void {
      const plants = changed.get(user) ?? { version: ofAll, knownFrom: ofAll, creates: [] }
      const last = plants.creates.at(-1)
      if (last?.version === version) {
        if (id < last.lowestId) last.lowestId = id
        return
      }
      plants.creates.push({ version, lowestId: id })
      if (plants.creates.length > KNOWN_CREATES_MAX) plants.knownFrom = plants.creates.shift()?.version ?? version
      plants.version = version
      changed.set(user, plants)
    },
    recordDelete(user: UserId, version: Version): void {
      changed.set(user, { version, knownFrom: version, creates: [] })
    },
    changeAll(version: Version): void {
      ofAll = version
      changed.clear()
    },
    areTooMany: (): boolean => changed.size > CHANGED_USERS_MAX,
  }
}
