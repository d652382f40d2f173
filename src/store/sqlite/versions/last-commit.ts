import type { Stamp } from './wal-index.ts'

/**
 * What the connection that writes says of its last commit, in memory that its thread shares with the one that reads:
 * nobody need wait for a message.
 */
export interface LastCommit {
  /** The stamps before and after it, or `NO_STAMP`. */
  readonly stamps: BigInt64Array<ArrayBufferLike>
  readonly durationMs: Float64Array<ArrayBufferLike>
  /** One of `NOTE`. */
  readonly note: Int32Array<ArrayBufferLike>
}

/** Where the stamps around a commit are not known. It is equal to no stamp. */
export const NO_STAMP: Stamp = -1

/** Whether the stamps after a commit that was announced are there; `LATE` if they were waited for once, and did not come. */
export const NOTE = { MADE: 0, AWAITED: 1, LATE: 2 } as const

/** For so long a note is waited for at most. It is made some microseconds after the commit, if its thread is let run. */
export const NOTE_MAX_MS = 2

const [BEFORE, AFTER] = [0, 1]

/** No commit yet. */
export const shareLastCommit = (): LastCommit => ({
  stamps: new BigInt64Array(new SharedArrayBuffer(2 * BigInt64Array.BYTES_PER_ELEMENT)).fill(BigInt(NO_STAMP)),
  durationMs: new Float64Array(new SharedArrayBuffer(Float64Array.BYTES_PER_ELEMENT)).fill(Number.NaN),
  note: new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT)),
})

/** Says that a commit follows, and the stamp before it, which holds while the connection has the lock. */
export function announceCommit(lastCommit: LastCommit, before: Stamp): void {
  storeStamps(lastCommit, before, NO_STAMP)
  Atomics.store(lastCommit.note, 0, NOTE.AWAITED)
}

/** Says what the stamps around it are; `NO_STAMP` where that is not known, or where it was none. */
export function noteCommit(lastCommit: LastCommit, before: Stamp, after: Stamp): void {
  storeStamps(lastCommit, before, after)
  Atomics.store(lastCommit.note, 0, NOTE.MADE)
  Atomics.notify(lastCommit.note, 0)
}

/** Says how long it took, its sync included. */
export function noteCommitMs({ durationMs }: LastCommit, ms: number): void {
  durationMs[0] = ms
}

export const commitMsOf = ({ durationMs: [ms = Number.NaN] }: LastCommit): number => ms

/** The stamps around the last commit, as far as they are noted. */
export function stampsOf({ stamps }: LastCommit): readonly [before: Stamp, after: Stamp] {
  // The later one first: if it is of one commit and the other of the next, they must not be taken for a pair that has
  // another's commit in between.
  const after = Number(Atomics.load(stamps, AFTER))
  return [Number(Atomics.load(stamps, BEFORE)), after]
}

/**
 * The same for one who has seen that the stamp is not `known` any more. If it was `known` before a commit that was
 * announced, then that has been made (or has failed, and another's was made), and its note is on its way: that is waited
 * for, in this thread, once and for `NOTE_MAX_MS` at most. The one that makes it may lack nothing but this one's core.
 */
export function awaitStamps(lastCommit: LastCommit, known: Stamp): readonly [before: Stamp, after: Stamp] {
  const { note, stamps } = lastCommit
  if (Atomics.load(note, 0) === NOTE.AWAITED && Number(Atomics.load(stamps, BEFORE)) === known) {
    const outcome = Atomics.wait(note, 0, NOTE.AWAITED, NOTE_MAX_MS)
    if (outcome === 'timed-out') Atomics.compareExchange(note, 0, NOTE.AWAITED, NOTE.LATE)
  }
  return stampsOf(lastCommit)
}

function storeStamps({ stamps }: LastCommit, before: Stamp, after: Stamp): void {
  Atomics.store(stamps, BEFORE, BigInt(before))
  Atomics.store(stamps, AFTER, BigInt(after))
}
