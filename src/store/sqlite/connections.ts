import type { Database } from 'bun:sqlite'
import { AppError } from '../../domain/error.ts'
import type { OpenOptions } from '../engine.ts'
import { type FileDurability, openReader } from './driver.ts'
import { toAppError } from './errors.ts'
import { fileIdentity } from './files/file-system.ts'
import { readVersions, shareChanges } from './versions.ts'
import { CHECKPOINTED_AT_MS } from './writing/group-commit.ts'
import { queueWrites } from './writing/queue.ts'
import { openWriterHere, openWriterInThread } from './writing/writer.ts'
import { type Failure, toError } from './writing/writes.ts'

/** The connections of a store. Everything reads and writes through them. */
export type Connections = ReturnType<typeof connect>

type ConnectOptions = Pick<OpenOptions, 'quotaPlants' | 'observer'> &
  Required<Pick<OpenOptions, 'isServer' | 'onEvent' | 'monotonicMs'>> & { readonly durability: FileDurability }

/**
 * Opens a connection that reads and one that writes. The first read, write or checkpoint that fails with `store_failed` ends all
 * writing, and `onFailure` is called with its error: after a failed sync nobody knows what is on disk, and a damaged page spreads.
 */
export function connect(path: string, onFailure: (error: AppError) => void, options: ConnectOptions) {
  let failure: AppError | undefined
  let closing: Promise<void> | undefined

  const recordFailure = (error: unknown) => {
    if (!(error instanceof AppError) || error.kind !== 'store_failed' || failure !== undefined) return
    failure = error
    void queue.refuse(new AppError('store_failed'))
    onFailure(error)
  }
  const reader = openReader(path)
  const { writer, changes, times, queue } = openQueue(path, recordFailure, options)
  const versions = readVersions(changes, {
    requestCheck: writer.checkOthers,
    dataVersion: dataVersionOf(reader),
    monotonicMs: options.monotonicMs,
  })

  const close = async () => {
    await queue.refuse(new AppError('store_busy'))
    // The last connection that closes brings the WAL into the database, unless it can only read.
    if (failure !== undefined) await writer.discard()
    reader.close(true)
    if (failure === undefined) throwFailure(await writer.close())
  }

  return {
    path,
    reader,
    /** Runs a read. Rejects with an `AppError` if SQLite fails. */
    async read<T>(work: () => T): Promise<T> {
      // A request whose connection was cut may still read.
      if (closing !== undefined) throw new AppError('store_busy')
      try {
        return work()
      } catch (cause) {
        const error = toAppError(cause, path)
        recordFailure(error)
        throw error
      }
    },
    /** Asks for a write. Rejects with an `AppError` if SQLite fails. After `store_failed` no further write begins. */
    write: queue.write,
    load: queue.load,
    checkpointedAtMs: () => times[CHECKPOINTED_AT_MS] ?? 0,
    /** Brings the WAL into the database and empties it, unless another process reads it. */
    emptyWal: async () => throwFailure(await writer.truncate()),
    versions,
    /** Brings the WAL into the database and closes all. Further calls do nothing. */
    close(): Promise<void> {
      closing ??= close()
      return closing
    },
  }
}

/** Opens the connection that writes, with its queue. */
function openQueue(path: string, onFailure: (error: unknown) => void, options: ConnectOptions) {
  const { durability, quotaPlants, isServer, onEvent, observer, monotonicMs } = options
  const changes = shareChanges(monotonicMs())
  const times = new Float64Array(new SharedArrayBuffer(2 * Float64Array.BYTES_PER_ELEMENT))
  times[CHECKPOINTED_AT_MS] = Date.now()
  const open = isServer ? openWriterInThread : openWriterHere
  const writer = open({ path, identity: fileIdentity(path), durability, quotaPlants, changes, times }, (report) => {
    if ('failure' in report) onFailure(toError(report.failure))
    else onEvent(report.event)
  })
  const queue = queueWrites({ writer, monotonicMs, times, onFailure, observer })
  return { writer, changes, times, queue }
}

/** Returns a function that reads `pragma data_version`, or `undefined` if SQLite fails: then the thread that writes finds the reason. */
function dataVersionOf(db: Database): () => unknown {
  const select = db.prepare('pragma data_version')
  return () => {
    try {
      return select.values()[0]?.[0]
    } catch {
      return undefined
    }
  }
}

function throwFailure(failure: Failure | undefined): void {
  if (failure !== undefined) throw toError(failure)
}
