import type { CheckpointReport, Failure, GroupResult } from './group-result.ts'
import type { Call } from './writes.ts'

/** Commits groups of writes, one group at a time, in this thread or in another one. */
export interface Writer {
  /** Commits a group. Rejects only if the writer is gone: then the outcome of the group is unknown. */
  perform(group: readonly Call[], nowMs: number): Promise<GroupResult>
  /** Asks for a look for commits of other processes, and does not wait for it. */
  checkOthers(nowMs: number): void
  /** Empties the WAL, unless another process reads it. Resolves to the failure, if there was one. */
  truncate(): Promise<Failure | undefined>
  /** Brings the WAL into the database and ends. Resolves to the failure, if there was one. */
  close(): Promise<Failure | undefined>
  /** Ends and leaves the files as they are: the next start recovers from them. */
  discard(): Promise<void>
}

/** Called with reports of checkpoints, and with a failure if the writer ends before it was closed. */
export type OnWriterReport = (report: CheckpointReport) => void
