import type { Database } from 'bun:sqlite'
import { orUndefined } from '../../domain/error.ts'
import { INT64_MAX, INT64_MIN } from '../../domain/int64.ts'
import { OTHERS_SEEN_WITHIN_MS, type Store, type Version } from '../../domain/store.ts'
import { type Call, CHANGES } from '../../store/sqlite/writing/writes.ts'
import type { WriteResults } from '../group-queue.ts'

/*
 * How the caches of a server know whether an answer is still true. There are slots: one for each hash of a user's id, and one for
 * all tokens. The thread that writes raises `begun` of a slot before a commit that changes it, and sets
 * `ended` to `begun` after the commit. A reader takes a version only while both are equal. The version it takes before a read
 * stays valid for as long as `begun` and `epoch` stay the same.
 *
 * SQLite itself tells about other processes: `pragma data_version` of the connection that writes changes with their commits
 * only (https://sqlite.org/pragma.html#pragma_data_version). Nobody knows what such a commit has changed, so it raises `epoch`.
 * A version is `begun` plus `KNOWN_CHANGES` for each epoch. It only grows, and the next epoch is past all known changes.
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

/** After this time a server looks again for commits of other processes, if requests come. */
export const CHECK_AFTER_MS = OTHERS_SEEN_WITHIN_MS * 0.4

/** What the thread that writes shares with the threads that read. */
export type Changes = ReturnType<typeof shareChanges>

/** When the last completed check for other processes was asked for, in whole milliseconds of the clock of the reader who asked. */
export type CheckTime = BigInt64Array<SharedArrayBuffer>

/** Nothing has changed yet. */
export const shareChanges = () => ({
  begun: new Int32Array(new SharedArrayBuffer(SLOTS * Int32Array.BYTES_PER_ELEMENT)),
  ended: new Int32Array(new SharedArrayBuffer(SLOTS * Int32Array.BYTES_PER_ELEMENT)),
  /** Of the latest changes of each slot, the lowest id that they created, or `ANY_ID`. */
  lowestIds: new BigInt64Array(new SharedArrayBuffer(SLOTS * KNOWN_CHANGES * BigInt64Array.BYTES_PER_ELEMENT)),
  epoch: new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT)),
  /** How many messages the thread that writes was sent. It may wait for a change. */
  posted: new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT)),
  /** The Unix time at which a checkpoint last brought the whole WAL into the database, or at which the store was opened. */
  checkpointedAtMs: new Float64Array(new SharedArrayBuffer(Float64Array.BYTES_PER_ELEMENT)).fill(Date.now()),
})

/** No check is recent. Each reader has a time of its own, because each thread has a clock of its own. It starts at 0. */
export const shareCheckTime = (): CheckTime =>
  new BigInt64Array(new SharedArrayBuffer(BigInt64Array.BYTES_PER_ELEMENT)).fill(BigInt(-OTHERS_SEEN_WITHIN_MS))

type Groups = readonly { readonly group: readonly Call[] }[]

/** The results of the groups, in the same order. */
type Answers = readonly { readonly results?: WriteResults }[]

/** The slots that groups change, with the lowest id that they create there. */
type ChangedSlots = ReadonlyMap<number, bigint>

/** The side of the connection that writes. `onOthers` is called if another process has committed. */
export function announceChanges(
  writer: Database,
  { begun, ended, lowestIds, epoch }: Changes,
  onOthers: () => void = () => {},
) {
  const selectDataVersion = writer.prepare('pragma data_version')
  /** Unknown before the first check, which therefore voids all versions. */
  let dataVersion: unknown

  return {
    /** Voids all versions if another process has committed, and tells the reader who asked, with the time by its clock. */
    checkOthers(checkedAtMs: CheckTime, askedAtMs: number): void {
      const found = selectDataVersion.values()[0]?.[0]
      if (found !== dataVersion) {
        onOthers()
        Atomics.add(epoch, 0, 1)
      }
      dataVersion = found
      Atomics.store(checkedAtMs, 0, BigInt(Math.floor(askedAtMs)))
    },
    /** Voids the versions of what groups have changed, before their commit. Returns what `end` needs. */
    begin(groups: Groups, answers: Answers): ChangedSlots {
      const slots = slotsOf(groups, answers)
      for (const [slot, lowestId] of slots) {
        Atomics.store(lowestIds, indexOf(slot, (Atomics.load(begun, slot) >>> 0) + 1), lowestId)
        Atomics.add(begun, slot, 1)
      }
      return slots
    },
    /** After the commit, or its failure, versions can be taken again. */
    end(slots: ChangedSlots): void {
      for (const slot of slots.keys()) Atomics.store(ended, slot, Atomics.load(begun, slot))
    },
  }
}

type PlantCall = Extract<Call, readonly ['createPlant' | 'putPlant' | 'deletePlant', ...unknown[]]>

function slotsOf(groups: Groups, answers: Answers): ChangedSlots {
  const slots = new Map<number, bigint>()
  for (const [at, { group }] of groups.entries()) {
    const { refused = [], returned = [] } = answers[at]?.results ?? {}
    const refusals = new Set(Array.from(refused, ([index]) => index))
    const returns = new Map(returned)
    for (const [index, call] of group.entries()) {
      const changed = refusals.has(index) ? 'nothing' : CHANGES[call[0]]
      if (changed === 'plants') {
        const [name, user, id] = call as PlantCall
        const slot = user % USER_SLOTS
        // A put returns true if it made the plant.
        const lowestId = name === 'createPlant' || returns.get(index) === true ? BigInt(id) : ANY_ID
        if (lowestId <= (slots.get(slot) ?? INT64_MAX)) slots.set(slot, lowestId)
      } else if (changed === 'tokens') slots.set(TOKENS, ANY_ID)
      else if (changed === 'everything') for (let slot = 0; slot < SLOTS; slot++) slots.set(slot, ANY_ID)
    }
  }
  return slots
}

/** The index of the lowest id of a change. A version after the change serves as well as `begun`, whatever the epoch. */
const indexOf = (slot: number, change: number): number => slot * KNOWN_CHANGES + (change % KNOWN_CHANGES)

interface ReaderOptions {
  readonly checkedAtMs: CheckTime
  /** Asks the thread for a check, and does not wait. */
  readonly requestCheck: (nowMs: number) => void
  /** `pragma data_version` of the connection that reads: it changes with every commit. It throws if SQLite fails. */
  readonly dataVersion: () => unknown
  readonly monotonicMs: () => number
}

/** The side of a reader. */
export function readVersions(
  { begun, ended, lowestIds, epoch }: Changes,
  { checkedAtMs, requestCheck, dataVersion, monotonicMs }: ReaderOptions,
) {
  let checkedMs = Number.NEGATIVE_INFINITY
  let requestedMs = Number.NEGATIVE_INFINITY
  let versionAtRequest: unknown

  /** Takes over a completed check, and asks for another one if that is old. */
  const check = (nowMs: number) => {
    checkedMs = Math.max(checkedMs, Number(Atomics.load(checkedAtMs, 0)))
    if (nowMs - Math.max(checkedMs, requestedMs) <= CHECK_AFTER_MS) return
    // The thread that writes finds the reason if SQLite fails.
    const found = orUndefined(dataVersion)
    // If nobody has committed since a check that is completed was requested, this is a check too. It saves waking the thread.
    if (found !== undefined && found === versionAtRequest && checkedMs >= requestedMs) {
      checkedMs = Math.floor(nowMs)
      return
    }
    versionAtRequest = found
    requestedMs = Math.floor(nowMs)
    requestCheck(nowMs)
  }
  /** Whether the versions show every commit of another process that is older than `OTHERS_SEEN_WITHIN_MS`. */
  const isChecked = (): boolean => {
    const nowMs = monotonicMs()
    if (nowMs - checkedMs > CHECK_AFTER_MS) check(nowMs)
    return nowMs - checkedMs < OTHERS_SEEN_WITHIN_MS
  }
  /** The version that a number of changes of a slot makes. As unsigned numbers: a busy user reaches 2^31 changes within weeks. */
  const versionAt = (changes: number): Version => (Atomics.load(epoch, 0) >>> 0) * KNOWN_CHANGES + (changes >>> 0)
  const versionOf = (slot: number): Version | undefined => {
    if (!isChecked()) return undefined
    const changes = Atomics.load(begun, slot)
    const isUnderWay = changes !== Atomics.load(ended, slot)
    return isUnderWay ? undefined : versionAt(changes)
  }
  return {
    plantsVersion: (user) => versionOf(user % USER_SLOTS),
    hasOnlyGrown(user, since, above) {
      if (!isChecked()) return false
      const slot = user % USER_SLOTS
      // A commit that is under way counts as a change, whether a reader can see it or not.
      const now = versionAt(Atomics.load(begun, slot))
      if (now < since || now - since >= KNOWN_CHANGES) return false
      for (let change = since + 1; change <= now; change++) {
        if (Atomics.load(lowestIds, indexOf(slot, change)) <= above) return false
      }
      // Meanwhile the thread that writes may have overwritten what the loop has read.
      return versionAt(Atomics.load(begun, slot)) - since < KNOWN_CHANGES
    },
    tokensVersion: () => versionOf(TOKENS),
    hasSameTokens: (_, since) => since === versionOf(TOKENS),
  } satisfies Partial<Store>
}
