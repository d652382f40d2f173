import { TOKEN_CHANGES_SEEN_WITHIN_MS, type Version } from '../../domain/store.ts'
import type { UserId } from '../../domain/token.ts'

/** The age at which the changes are read again, and the age from which they no longer count. */
const REFRESH_AFTER_MS = 300
const VALID_FOR_MS = TOKEN_CHANGES_SEEN_WITHIN_MS - 100

/** Users with the same remainder share the version of their last change. */
const USER_SLOTS = 65_536

/** The stamp of the latest change, and the latest changes. */
export interface TokenChanges {
  readonly stamp: bigint
  readonly changes: string
}

/** Watches what any process changes of tokens and users (see `openTokenChanges`). Requests start its reads, and wait for none. */
export function watchTokens(readChanges: () => Promise<TokenChanges>, monotonicMs = () => performance.now()) {
  let version: Version = 0
  const changedAt = new Float64Array(USER_SLOTS)
  let knownStamp: bigint | undefined
  let asOfMs = Number.NEGATIVE_INFINITY
  let reading: Promise<void> | undefined

  const changed = (users: Iterable<UserId>) => {
    for (const user of users) changedAt[user % USER_SLOTS] = ++version
  }
  const read = async () => {
    const startMs = monotonicMs()
    const { stamp, changes } = await readChanges()
    const users = changedSince(knownStamp, stamp, changes)
    if (users === undefined) changedAt.fill(++version)
    else changed(users)
    knownStamp = stamp
    asOfMs = startMs
  }
  const tokensVersion = (): Version | undefined => {
    const ageMs = monotonicMs() - asOfMs
    if (ageMs > REFRESH_AFTER_MS) void refresh()
    return ageMs < VALID_FOR_MS ? version : undefined
  }
  const refresh = () => {
    // If the read fails, the changes become too old. Then each request reads the token itself and reports the failure.
    reading ??= read()
      .catch(() => undefined)
      .finally(() => {
        reading = undefined
      })
    return reading
  }

  return {
    refresh,
    tokensVersion,
    hasSameTokens: (user: UserId, since: Version): boolean =>
      tokensVersion() !== undefined && since >= (changedAt[user % USER_SLOTS] ?? version),
    changed,
  }
}

/** The users who changed after a stamp until the current one. `undefined` if the changes do not tell. */
function changedSince(known: bigint | undefined, stamp: bigint, changes: string): readonly UserId[] | undefined {
  if (stamp === known) return []
  // The last change may lack its end.
  const all = [...changes.matchAll(/(\S+) (\d+);/g)]
  const seen = all.findIndex(([, each]) => each === `${known}`)
  return all[0]?.[1] === `${stamp}` && seen > 0 ? all.slice(0, seen).map(([, , user]) => Number(user)) : undefined
}
