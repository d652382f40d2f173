import type { Database } from 'bun:sqlite'
import { AppError } from '../../domain/error.ts'
import type { StoreLoad, StoreObserver } from '../../domain/statistics.ts'
import type { Durability, Version } from '../../domain/store.ts'
import type { UserId } from '../../domain/token.ts'
import type { StoreEvent } from '../options.ts'
import { openReader } from './connection.ts'
import { toAppError } from './errors.ts'
import { fileIdentity } from './files/preflight.ts'
import type { WriterOptions } from './group-commit.ts'
import { toError } from './group-result.ts'
import { queueWrites, type WriteQueue } from './queue.ts'
import { commitMsOf, shareLastCommit } from './versions/last-commit.ts'
import { trackVersions } from './versions/versions.ts'
import { watchWalIndex } from './versions/wal-index.ts'
import { openWriterHere } from './writer-here.ts'
import { openWriterInThread } from './writer-in-thread.ts'

/** The connections of a store, and the one way through which everything reads and writes. */
export interface Connections {
  readonly path: string
  readonly reader: Database
  /** Runs a read. Its failure is said in the store's terms. */
  read<T>(work: () => T): Promise<T>
  /** Asks for a write. Its failure is said in the store's terms; after `store_failed` no further one is begun. */
  readonly write: WriteQueue['write']
  /** Writes that are not durable yet. */
  load(): StoreLoad
  /** Brings the WAL into the database and empties it, unless somebody is in the way. */
  emptyWal(): Promise<void>
  plantsVersion(user: UserId): Version | undefined
  hasOnlyGrown(user: UserId, since: Version, above: bigint): boolean
  tokensVersion(): Version | undefined
  /** Ends all, after the WAL was brought into the database. Once more it does nothing. */
  close(): Promise<void>
}

interface ConnectOptions {
  readonly durability: Durability
  readonly writesInThread: boolean
  readonly onEvent: (event: StoreEvent) => void
  readonly observer: StoreObserver | undefined
}

/**
 * Opens a connection that reads and one that writes. `onFailure` is told once, by the first read, write or checkpoint
 * that fails so that nothing may be written any more: a sync that failed proves nothing about what is on disk, and a
 * damaged page spreads.
 */
export function connect(
  path: string,
  onFailure: (error: AppError) => void,
  { durability, writesInThread, onEvent, observer }: ConnectOptions,
): Connections {
  let failure: AppError | undefined
  let closing: Promise<void> | undefined

  const noteFailure = (error: unknown) => {
    if (!(error instanceof AppError) || error.kind !== 'store_failed' || failure !== undefined) return
    failure = error
    void writes.refuse(new AppError('store_failed'))
    onFailure(error)
  }

  const lastCommit = shareLastCommit()
  const options: WriterOptions = { path, identity: fileIdentity(path), durability, lastCommit }
  const openWriter = writesInThread ? openWriterInThread : openWriterHere
  const reader = openReader(path)
  const writer = openWriter(options, (report) => {
    if ('failure' in report) noteFailure(toError(report.failure))
    else onEvent(report.event)
  })
  const walIndex = watchWalIndex(path)
  const versions = walIndex && trackVersions(walIndex.stamp, lastCommit)
  const writes = queueWrites(
    writer,
    versions,
    noteFailure,
    observer && {
      recordGroup: (count) => observer.recordGroup(count, commitMsOf(lastCommit)),
      recordRefusal: observer.recordRefusal,
    },
  )

  const close = async () => {
    await writes.refuse(new AppError('store_busy'))
    // The last connection to be closed brings the WAL into the database, unless it can only read.
    if (failure !== undefined) await writer.discard()
    reader.close(true)
    if (failure !== undefined) return
    const failed = await writer.close()
    if (failed !== undefined) throw toError(failed)
  }

  return {
    path,
    reader,
    async read(work) {
      // Cut requests may go on a little; what they ask for then is not there any more.
      if (closing !== undefined) throw new AppError('store_busy')
      try {
        return work()
      } catch (cause) {
        const error = toAppError(cause, { duringWrite: false, path })
        noteFailure(error)
        throw error
      }
    },
    write: writes.write,
    load: writes.load,
    async emptyWal() {
      const failed = await writer.truncate()
      if (failed !== undefined) throw toError(failed)
    },
    // Once it is closed, the memory where the stamp is may be gone.
    plantsVersion: (user) => (closing === undefined ? versions?.plants(user) : undefined),
    hasOnlyGrown: (user, since, above) =>
      closing === undefined && versions !== undefined && versions.hasOnlyGrown(user, since, above),
    tokensVersion: () => (closing === undefined ? versions?.tokens() : undefined),
    close() {
      closing ??= close()
      return closing
    },
  }
}
