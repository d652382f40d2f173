import type { Stamp } from './wal-index.ts'

/**
 * What the connection that writes says of its last commit, in memory that its thread shares with the one that reads:
 * nobody need wait for a message.
 */
export interface LastCommit {
  /** The stamps around it; NaN, which equals none, where they are not known. */
  readonly stamps: Float64Array<ArrayBufferLike>
  readonly durationMs: Float64Array<ArrayBufferLike>
  /** `AWAITED` from before the commit until its stamps are noted. */
  readonly note: Int32Array<ArrayBufferLike>
}

const NOTED = 0
const AWAITED = 1

/** For so long a note is waited for at most. It is made some microseconds after the commit, if its thread is let run. */
const NOTE_MAX_MS = 2

/** No commit yet. */
export const shareLastCommit = (): LastCommit => ({
  stamps: new Float64Array(new SharedArrayBuffer(2 * Float64Array.BYTES_PER_ELEMENT)).fill(Number.NaN),
  durationMs: new Float64Array(new SharedArrayBuffer(Float64Array.BYTES_PER_ELEMENT)).fill(Number.NaN),
  note: new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT)),
})

/** Says that a commit follows, and the stamp before it, which holds while the connection has the lock. */
export function announceCommit({ stamps, note }: LastCommit, before: Stamp): void {
  stamps[0] = before
  stamps[1] = Number.NaN
  Atomics.store(note, 0, AWAITED)
}

/** Says what the stamps around it are; NaN where that is not known, or where it was none. */
export function noteCommit({ stamps, note }: LastCommit, before: Stamp, after: Stamp): void {
  stamps[0] = before
  stamps[1] = after
  Atomics.store(note, 0, NOTED)
  Atomics.notify(note, 0)
}

/** Says how long it took, its sync included. */
export function noteCommitMs({ durationMs }: LastCommit, ms: number): void {
  durationMs[0] = ms
}

export const commitMsOf = ({ durationMs: [ms = Number.NaN] }: LastCommit): number => ms

/**
 * The stamps around the last commit, for one who has seen that the stamp is not `known` any more. If `known` is what it
 * was before a commit that was announced, then that has been made (or has failed, and another one was made), and its note
 * is on its way: it is waited for, since its thread may stand still for nothing but this one's having its core.
 */
export function stampsOf({ stamps, note }: LastCommit, known: Stamp): readonly [before: Stamp, after: Stamp] {
  if (Atomics.load(note, 0) === AWAITED && stamps[0] === known) Atomics.wait(note, 0, AWAITED, NOTE_MAX_MS)
  const [before = Number.NaN, after = Number.NaN] = stamps
  return [before, after]
}
