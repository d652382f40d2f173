import type { Durability } from '../../../domain/store.ts'
import { openWriter } from '../connection.ts'
import { isLocked, toAppError } from '../errors.ts'
import { fileIdentity } from '../files/file-identity.ts'
import { watchFiles } from '../files/moved-files.ts'
import { announceChanges, type Changes } from '../versions.ts'
import { checkpoints } from './checkpoints.ts'
import { type CheckpointReport, type Failure, type GroupResult, toFailure } from './group-result.ts'
import { groupTransaction, movedAway } from './group-transaction.ts'
import { type Call, createWrites } from './writes.ts'

/** Commits groups on a connection of its own, in the thread that opened it. */
export type GroupWriter = ReturnType<typeof openGroupWriter>

/** What a writer needs to know. */
export interface WriterOptions {
  readonly path: string
  /** The identity of the file that the store has opened. Writes to another file at the path would be lost. */
  readonly identity: string
  readonly durability: Durability
  /** The writer announces here what a commit changes, its own or another process's. */
  readonly changes: Changes
  /** The writer puts the duration of its last commit here. */
  readonly commitMs: Float64Array<SharedArrayBuffer>
}

/** Opens the connection that writes. Throws SQLite's error, or an error that says that the file was moved. */
export function openGroupWriter(options: WriterOptions) {
  const { path } = options
  const connection = openWatched(options)
  const announced = announceChanges(connection.writer, options.changes)
  const wal = checkpoints(connection.writer, (error) => toAppError(error, { duringWrite: false, path }))
  const commitGroup = groupTransaction(connection, announced, options)
  /** After it no write begins. A group may be on its way already when a checkpoint fails. */
  let failure: Failure | undefined

  const attempt = <T>(work: () => T): T | { readonly failure: Failure } => {
    try {
      return work()
    } catch (error) {
      const failed = toFailure(error)
      if (failed.kind === 'store_failed') failure = { ...failed, outcomeIsUnknown: false }
      return { failure: failed }
    }
  }
  const checkpoint = (mode: 'passive' | 'truncate'): Failure | undefined => attempt(() => void wal.run(mode))?.failure

  return {
    /** Commits a group of writes in one transaction with one sync. Each write is done or refused by itself. */
    perform: (group: readonly Call[], nowMs: number): GroupResult =>
      failure === undefined ? attempt(() => commitGroup(group, nowMs)) : { failure },
    /** Looks for commits of other processes. */
    checkOthers(nowMs: number): void {
      try {
        announced.checkOthers(nowMs)
      } catch (error) {
        // Another process recovers the WAL at the moment. The reader will ask again.
        if (!isLocked(error)) throw error
      }
    },
    /** Brings a WAL that has grown into the database. */
    checkpointIfDue: (): CheckpointReport | undefined =>
      attempt(() => {
        const event = wal.runIfDue()
        return event && { event }
      }),
    /** Empties the WAL, unless another process reads it. Returns the failure, if there is one. */
    truncate: () => checkpoint('truncate'),
    /** Brings the WAL into the database and ends the connection. Returns the failure, if there is one. */
    close(): Failure | undefined {
      const failed = checkpoint('passive')
      connection.writer.close(true)
      return failed
    },
    /** Ends the connection and leaves the files as they are: the next start recovers from them. */
    discard(): undefined {
      connection.writer.close(true)
    },
  }
}

/** Opens the connection, and watches whether its files stay at their paths. */
function openWatched({ path, identity, durability }: WriterOptions) {
  if (fileIdentity(path) !== identity) throw movedAway(path)
  const { opened, areMoved } = watchFiles(path, () => {
    const writer = openWriter(path, durability, { create: false })
    // The queue waits for locks, so that this thread can do other things meanwhile.
    writer.run('pragma busy_timeout = 0')
    return { writer, writes: createWrites(writer) }
  })
  return { ...opened, areMoved }
}
