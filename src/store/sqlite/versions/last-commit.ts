import type { CommitVersion } from './wal-index.ts'

/** The last commit of the connection that writes, in memory that its thread shares with the thread that reads. */
export interface LastCommit {
  /** The commit versions before and after it, or `UNKNOWN_VERSION`. */
  readonly versions: BigInt64Array<ArrayBufferLike>
  readonly durationMs: Float64Array<ArrayBufferLike>
  /** One of `COMMIT_STATE`. */
  readonly state: Int32Array<ArrayBufferLike>
}

/** The commit version is not known. It equals no commit version. */
export const UNKNOWN_VERSION: CommitVersion = -1

/** Whether an announced commit is recorded. It is `LATE` if the reader has waited for the record once, and it did not come. */
export const COMMIT_STATE = { RECORDED: 0, ANNOUNCED: 1, LATE: 2 } as const

/** How long the reader waits for a record. The writer makes it some microseconds after the commit, if its thread may run. */
export const RECORD_WAIT_MAX_MS = 2

const [BEFORE, AFTER] = [0, 1]

/** Shared memory in which no commit is recorded yet. */
export const shareLastCommit = (): LastCommit => ({
  versions: new BigInt64Array(new SharedArrayBuffer(2 * BigInt64Array.BYTES_PER_ELEMENT)).fill(BigInt(UNKNOWN_VERSION)),
  durationMs: new Float64Array(new SharedArrayBuffer(Float64Array.BYTES_PER_ELEMENT)).fill(Number.NaN),
  state: new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT)),
})

/** Announces a commit, with the version before it. That version holds while the connection has the lock. */
export function announceCommit(lastCommit: LastCommit, before: CommitVersion): void {
  storeVersions(lastCommit, before, UNKNOWN_VERSION)
  Atomics.store(lastCommit.state, 0, COMMIT_STATE.ANNOUNCED)
}

/** Records the versions around the commit. They are `UNKNOWN_VERSION` if it failed or another process may have committed. */
export function recordCommit(lastCommit: LastCommit, before: CommitVersion, after: CommitVersion): void {
  storeVersions(lastCommit, before, after)
  Atomics.store(lastCommit.state, 0, COMMIT_STATE.RECORDED)
  Atomics.notify(lastCommit.state, 0)
}

/** Records how long the commit took, its sync included. */
export function recordCommitMs({ durationMs }: LastCommit, ms: number): void {
  durationMs[0] = ms
}

/** How long the last commit took. */
export const commitMsOf = ({ durationMs: [ms = Number.NaN] }: LastCommit): number => ms

/** The versions around the last commit, as far as they are recorded. */
export function versionsOf({ versions }: LastCommit): readonly [before: CommitVersion, after: CommitVersion] {
  // The later version first. In the other order the two could come from two commits, with a commit of another process between.
  const after = Number(Atomics.load(versions, AFTER))
  return [Number(Atomics.load(versions, BEFORE)), after]
}

/**
 * The same for a reader that has seen that the version is not `known` any more. If a commit was announced at the version
 * `known`, that commit is made or has failed, and its record is on its way. The reader's thread then blocks, once and for
 * `RECORD_WAIT_MAX_MS` at most: the writer may lack only this core.
 */
export function awaitVersions(
  lastCommit: LastCommit,
  known: CommitVersion,
): readonly [before: CommitVersion, after: CommitVersion] {
  const { state, versions } = lastCommit
  if (Atomics.load(state, 0) === COMMIT_STATE.ANNOUNCED && Number(Atomics.load(versions, BEFORE)) === known) {
    const outcome = Atomics.wait(state, 0, COMMIT_STATE.ANNOUNCED, RECORD_WAIT_MAX_MS)
    if (outcome === 'timed-out') Atomics.compareExchange(state, 0, COMMIT_STATE.ANNOUNCED, COMMIT_STATE.LATE)
  }
  return versionsOf(lastCommit)
}

function storeVersions({ versions }: LastCommit, before: CommitVersion, after: CommitVersion): void {
  Atomics.store(versions, BEFORE, BigInt(before))
  Atomics.store(versions, AFTER, BigInt(after))
}
