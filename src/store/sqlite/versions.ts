import type { Database } from 'bun:sqlite'
import { INT64_MIN } from '../../domain/int64.ts'
import { OTHERS_SEEN_WITHIN_MS, type Store, type Version } from '../../domain/store.ts'
import type { UserId } from '../../domain/token.ts'
import { type Call, CHANGES } from './writing/writes.ts'

/*
 * How the caches of a server know whether an answer is still true. There are slots: one for each hash of a user's id, and one for
 * all tokens. The thread that writes raises `begun` of a slot before a commit that changes it, and sets
 * `ended` to `begun` after the commit. A reader takes a version only while both are equal. The version it takes before a read
 * stays valid for as long as `begun` stays the same.
 *
 * SQLite itself tells about other processes: `pragma data_version` of the connection that writes changes with their commits
 * only (https://sqlite.org/pragma.html#pragma_data_version).
 */

const USER_SLOTS = 1024
/**
 * So many of the latest changes of a slot are known by the lowest id that they created. With 4, and 10 000 users who share the
 * slots, 7 % of the lists of a mixed load were read again.
 */
const KNOWN_CHANGES = 32
/** The lowest id of a change that is more than creates. */
const ANY_ID = INT64_MIN
const TOKENS = USER_SLOTS
const SLOTS = USER_SLOTS + 1
/** A change of everything changes each slot. */
const EVERYTHING = Array.from({ length: SLOTS }, (_, slot) => slot)

/** After this time a server looks again for commits of other processes, if requests come. */
const CHECK_AFTER_MS = OTHERS_SEEN_WITHIN_MS * 0.4

/** After a pause of requests as long as this, no check counts as recent. */
const PAUSE_MAX_MS = 3_600_000

/** What the thread that writes shares with the thread that reads. */
export interface Changes {
  readonly begun: Int32Array<SharedArrayBuffer>
  readonly ended: Int32Array<SharedArrayBuffer>
  /** Of the latest changes of each slot, the lowest id that they created, or `ANY_ID`. */
  readonly lowestIds: BigInt64Array<SharedArrayBuffer>
  /** When the reader asked for the last completed check for other processes, by `toClock`. */
  readonly checkedAt: Int32Array<SharedArrayBuffer>
}

/** Nothing has changed yet, and no check is recent. */
export function shareChanges(nowMs: number): Changes {
  const lowestIds = new BigInt64Array(new SharedArrayBuffer(SLOTS * KNOWN_CHANGES * BigInt64Array.BYTES_PER_ELEMENT))
  const changes = { begun: sharedInts(SLOTS), ended: sharedInts(SLOTS), lowestIds, checkedAt: sharedInts(1) }
  changes.checkedAt[0] = toClock(nowMs - OTHERS_SEEN_WITHIN_MS)
  return changes
}

const sharedInts = (length: number) => new Int32Array(new SharedArrayBuffer(length * Int32Array.BYTES_PER_ELEMENT))

/** Milliseconds as an int32, which wraps after 49 days. */
const toClock = (ms: number): number => ms | 0

/** The side of the connection that writes. `onOthers` is called if another process has committed. */
export function announceChanges(
  writer: Database,
  { begun, ended, lowestIds, checkedAt }: Changes,
  onOthers: () => void = () => {},
) {
  const selectDataVersion = writer.prepare('pragma data_version')
  /** Unknown before the first check, which therefore voids all versions. */
  let dataVersion: unknown

  const begin = (slot: number, lowestId = ANY_ID) => {
    Atomics.store(lowestIds, placeOf(slot, countOf(begun, slot) + 1), lowestId)
    Atomics.add(begun, slot, 1)
  }
  const end = (slot: number) => void Atomics.store(ended, slot, Atomics.load(begun, slot))

  return {
    /** Voids all versions if another process has committed. `askedAtMs` is from the clock of the reader. */
    checkOthers(askedAtMs: number): void {
      const found = selectDataVersion.values()[0]?.[0]
      if (found !== dataVersion) {
        onOthers()
        for (const slot of EVERYTHING) {
          begin(slot)
          end(slot)
        }
      }
      dataVersion = found
      Atomics.store(checkedAt, 0, toClock(askedAtMs))
    },
    /** Voids the versions of what a group changes, before its commit. Returns what ends that, after the commit or its failure. */
    begin(group: readonly Call[]): () => void {
      const slots = slotsOf(group)
      for (const [slot, lowestId] of slots) begin(slot, lowestId)
      return () => {
        for (const slot of slots.keys()) end(slot)
      }
    },
  }
}

/** The slots that a group changes, with the lowest id that it creates there. */
function slotsOf(group: readonly Call[]): ReadonlyMap<number, bigint> {
  const slots = new Map<number, bigint>()
  for (const call of group) {
    const changed = CHANGES[call[0]]
    if (call[0] === 'createPlant') {
      const [, user, id] = call
      const lowestId = slots.get(userSlot(user))
      if (lowestId === undefined || id < lowestId) slots.set(userSlot(user), id)
    } else if (changed === 'plants') slots.set(userSlot(call[1] as UserId), ANY_ID)
    else if (changed === 'tokens') slots.set(TOKENS, ANY_ID)
    else if (changed === 'everything') for (const slot of EVERYTHING) slots.set(slot, ANY_ID)
  }
  return slots
}

/** A counter as an unsigned number: a busy user reaches 2^31 changes within weeks. */
const countOf = (counters: Changes['begun'], slot: number): number => Atomics.load(counters, slot) >>> 0

const placeOf = (slot: number, change: number): number => slot * KNOWN_CHANGES + (change % KNOWN_CHANGES)

const userSlot = (user: UserId): number => user % USER_SLOTS

interface ReaderOptions {
  /** Asks the thread for a check, and does not wait. */
  readonly requestCheck: (nowMs: number) => void
  /** `pragma data_version` of the connection that reads: it changes with every commit. */
  readonly dataVersion: () => unknown
  readonly monotonicMs: () => number
}

/** The side of the reader. */
export function readVersions(
  { begun, ended, lowestIds, checkedAt }: Changes,
  { requestCheck, dataVersion, monotonicMs }: ReaderOptions,
) {
  let askedAtMs = monotonicMs()
  let requestedAtMs = askedAtMs - OTHERS_SEEN_WITHIN_MS
  let versionAtRequest: unknown
  /** Milliseconds from the last completed check to this time. Less than 0 if the check is younger. */
  const sinceCheckMs = (nowMs: number): number => (toClock(nowMs) - Atomics.load(checkedAt, 0)) | 0

  /** If nobody has committed since a check that is completed was requested, this is a check too. It saves waking the thread. */
  const check = (nowMs: number) => {
    const found = dataVersion()
    const isCompleted = sinceCheckMs(requestedAtMs) <= 0
    if (found !== undefined && found === versionAtRequest && isCompleted) {
      Atomics.store(checkedAt, 0, toClock(nowMs))
      return
    }
    versionAtRequest = found
    requestedAtMs = nowMs
    requestCheck(nowMs)
  }
  /** Whether the versions show every commit of another process that is older than `OTHERS_SEEN_WITHIN_MS`. */
  const isChecked = (): boolean => {
    const nowMs = monotonicMs()
    // The int32 could have wrapped in a long pause, and an old check would look recent.
    if (nowMs - askedAtMs > PAUSE_MAX_MS) Atomics.store(checkedAt, 0, toClock(nowMs - OTHERS_SEEN_WITHIN_MS))
    askedAtMs = nowMs
    if (sinceCheckMs(nowMs) > CHECK_AFTER_MS && nowMs - requestedAtMs > CHECK_AFTER_MS) check(nowMs)
    return sinceCheckMs(nowMs) < OTHERS_SEEN_WITHIN_MS
  }
  const versionOf = (slot: number): Version | undefined => {
    if (!isChecked()) return undefined
    const version = countOf(begun, slot)
    const isUnderWay = version !== countOf(ended, slot)
    return isUnderWay ? undefined : version
  }
  return {
    plantsVersion: (user) => versionOf(userSlot(user)),
    hasOnlyGrown(user, since, above) {
      if (!isChecked()) return false
      const slot = userSlot(user)
      // A commit that is under way counts as a change, whether a reader can see it or not.
      const now = countOf(begun, slot)
      if (now < since || now - since >= KNOWN_CHANGES) return false
      for (let change = since + 1; change <= now; change++) {
        if (Atomics.load(lowestIds, placeOf(slot, change)) <= above) return false
      }
      // Meanwhile the thread that writes may have overwritten what the loop has read.
      return countOf(begun, slot) - since < KNOWN_CHANGES
    },
    tokensVersion: () => versionOf(TOKENS),
    hasSameTokens: (_, since) => since === versionOf(TOKENS),
  } satisfies Partial<Store>
}
