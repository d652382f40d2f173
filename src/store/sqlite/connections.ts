import { AppError } from '../../domain/error.ts'
import { openReader } from './driver.ts'
import { toAppError } from './errors.ts'
import { readVersions, shareChanges } from './versions.ts'
import { openWriter, type WriterOptions } from './writing/writer.ts'

/** The connections of a store. Everything reads and writes through them. */
export type Connections = ReturnType<typeof connect>

type ConnectOptions = Omit<WriterOptions, 'path' | 'changes' | 'onFailure'>

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
    void writer.refuse(new AppError('store_failed'))
    onFailure(error)
  }
  const reader = openReader(path)
  const { monotonicMs } = options
  const changes = shareChanges(monotonicMs())
  const writer = openWriter({ ...options, path, changes, onFailure: recordFailure })
  const selectDataVersion = reader.prepare('pragma data_version')
  const dataVersion = () => selectDataVersion.values()[0]?.[0]
  const versions = readVersions(changes, { requestCheck: writer.checkOthers, dataVersion, monotonicMs })

  const close = async () => {
    await writer.refuse(new AppError('store_busy'))
    // The last connection that closes brings the WAL into the database, unless it can only read.
    if (failure !== undefined) await writer.discard()
    reader.close(true)
    if (failure === undefined) await writer.close()
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
    writer,
    versions,
    /** Brings the WAL into the database and closes all. Further calls do nothing. */
    close(): Promise<void> {
      closing ??= close()
      return closing
    },
  }
}
