import type { Database } from 'bun:sqlite'
import { orUndefined } from '../../error.ts'
import type { Change } from './program.ts'

/*
 * How a thread that has cached what it read knows whether that is still true: the README of the engine says it under "Versions".
 * There are slots: one for each hash of an owner's id, and one for what all owners share. `pragma data_version` of the connection
 * that writes changes with commits of other processes only (https://sqlite.org/pragma.html#pragma_data_version).
 * A version is `begun` plus `KNOWN_CHANGES` for each epoch. It only grows, and the next epoch is past all known changes.
 */

/** What a reader takes before a read, and compares after it. */
export type Version = number

const OWNER_SLOTS = 1024
/**
 * So many of the latest changes of a slot are known by the lowest id that they changed. With 4, and 10 000 owners who share the
 * slots, 7 % of the lists of a mixed load were read again.
 */
const KNOWN_CHANGES = 32
/** Stands for a change that may concern any id. */
const ANY_ID = -(2n ** 63n)
const HIGHEST_ID = 2n ** 63n - 1n
const SHARED = OWNER_SLOTS
const SLOTS = OWNER_SLOTS + 1

/** After this part of `othersSeenWithinMs` a reader has the thread look again, once it is asked for a version. */
export const CHECK_AFTER = 0.4

type Numbers = Int32Array<SharedArrayBuffer>
type BigNumbers = BigInt64Array<SharedArrayBuffer>

/** What the thread that writes shares with the threads that read. All of it lies in shared memory. */
export interface Changes {
  readonly begun: Numbers
  readonly ended: Numbers
  /** Of the latest changes of each slot, the lowest id that they changed, or `ANY_ID`. */
  readonly lowestIds: BigNumbers
  readonly epoch: Numbers
  /** How many messages the thread that writes was sent. It may wait for a change. */
  readonly posted: Numbers
  /** The Unix time at which a checkpoint last brought the whole WAL into the database, or at which the store was opened. */
  readonly checkpointedAtMs: Float64Array<SharedArrayBuffer>
}

/** When the last completed check for other processes was asked for, in whole milliseconds of the reader's clock. */
export type CheckTime = BigNumbers

const shareNumbers = (length: number): Numbers =>
  new Int32Array(new SharedArrayBuffer(length * Int32Array.BYTES_PER_ELEMENT))
const shareBigNumbers = (length: number): BigNumbers =>
  new BigInt64Array(new SharedArrayBuffer(length * BigInt64Array.BYTES_PER_ELEMENT))

export const shareChanges = (): Changes => ({
  begun: shareNumbers(SLOTS),
  ended: shareNumbers(SLOTS),
  lowestIds: shareBigNumbers(SLOTS * KNOWN_CHANGES),
  epoch: shareNumbers(1),
  posted: shareNumbers(1),
  checkpointedAtMs: new Float64Array(new SharedArrayBuffer(Float64Array.BYTES_PER_ELEMENT)).fill(Date.now()),
})

/** No check is recent. Each reader has a time of its own, because each thread has a clock of its own. It starts at 0. */
export const shareCheckTime = (): CheckTime => shareBigNumbers(1).fill(BigInt(Number.MIN_SAFE_INTEGER))

/** The slots that the writes of a transaction change, with the lowest id that they change there. */
export type ChangedSlots = Map<number, bigint>

export function addChange(slots: ChangedSlots, change: Change | undefined): void {
  if (change === 'shared') slots.set(SHARED, ANY_ID)
  else if (change === 'everything') for (let slot = 0; slot < SLOTS; slot++) slots.set(slot, ANY_ID)
  else if (change !== undefined) {
    const { owner, lowestId = ANY_ID } = change
    const slot = owner % OWNER_SLOTS
    if (lowestId <= (slots.get(slot) ?? HIGHEST_ID)) slots.set(slot, lowestId)
  }
}

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
    /** Voids the versions of what a transaction has changed, before its commit. */
    begin(slots: ChangedSlots): void {
      for (const [slot, lowestId] of slots) {
        Atomics.store(lowestIds, indexOf(slot, (Atomics.load(begun, slot) >>> 0) + 1), lowestId)
        Atomics.add(begun, slot, 1)
      }
    },
    /** After the commit, or its failure, versions can be taken again. */
    end(slots: ChangedSlots): void {
      for (const slot of slots.keys()) Atomics.store(ended, slot, Atomics.load(begun, slot))
    },
  }
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
  /** Within this time the versions show the commits of other processes. */
  readonly othersSeenWithinMs: number
}

/** The side of a reader, which tells whether what it has read is still true. */
export function readVersions(
  { begun, ended, lowestIds, epoch }: Changes,
  { checkedAtMs, requestCheck, dataVersion, monotonicMs, othersSeenWithinMs }: ReaderOptions,
) {
  const checkAfterMs = othersSeenWithinMs * CHECK_AFTER
  let checkedMs = Number.NEGATIVE_INFINITY
  let requestedMs = Number.NEGATIVE_INFINITY
  let versionAtRequest: unknown

  /** Takes over a completed check, and asks for another one if that is old. */
  const check = (nowMs: number) => {
    checkedMs = Math.max(checkedMs, Number(Atomics.load(checkedAtMs, 0)))
    if (nowMs - Math.max(checkedMs, requestedMs) <= checkAfterMs) return
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
  /** Whether the versions show every commit of another process that is older than `othersSeenWithinMs`. */
  const isChecked = (): boolean => {
    const nowMs = monotonicMs()
    if (nowMs - checkedMs > checkAfterMs) check(nowMs)
    return nowMs - checkedMs < othersSeenWithinMs
  }
  /** The version after so many changes of a slot, as unsigned numbers: a busy owner reaches 2^31 changes within weeks. */
  const versionAt = (changes: number): Version => (Atomics.load(epoch, 0) >>> 0) * KNOWN_CHANGES + (changes >>> 0)
  const versionOf = (slot: number): Version | undefined => {
    if (!isChecked()) return undefined
    const changes = Atomics.load(begun, slot)
    const isUnderWay = changes !== Atomics.load(ended, slot)
    return isUnderWay ? undefined : versionAt(changes)
  }
  return {
    /** The version of an owner's rows. `undefined` while a commit changes them. */
    owner: (owner: number) => versionOf(owner % OWNER_SLOTS),
    /** The version of what all owners share. */
    shared: versionOf.bind(undefined, SHARED),
    /** Whether all changes of an owner's rows since a version were of rows above an id, none of them a delete. */
    isUnchangedUpTo(owner: number, since: Version, above: bigint): boolean {
      if (!isChecked()) return false
      const slot = owner % OWNER_SLOTS
      // A commit that is under way counts as a change, whether a reader can see it or not.
      const now = versionAt(Atomics.load(begun, slot))
      if (now < since || now - since >= KNOWN_CHANGES) return false
      for (let change = since + 1; change <= now; change++) {
        if (Atomics.load(lowestIds, indexOf(slot, change)) <= above) return false
      }
      // Meanwhile the thread that writes may have overwritten what the loop has read.
      return versionAt(Atomics.load(begun, slot)) - since < KNOWN_CHANGES
    },
  }
}
