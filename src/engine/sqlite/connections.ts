import { AppError } from '../../domain/error.ts'
import { openReader } from './driver.ts'
import { toAppError } from './errors.ts'
import { fileIdentity } from './files/file-system.ts'
import { movedAway } from './files/moved-files.ts'
import type { GroupCommitOptions } from './group-commit.ts'
import type { StoreShare } from './share.ts'
import { readVersions, shareChanges, shareCheckTime } from './versions.ts'
import { joinThread, openHere, openWriter, startThread, type WriterOptions } from './writer.ts'

type ThreadOptions = Omit<WriterOptions, 'open' | 'onFailure'>

interface ConnectOptions extends ThreadOptions, Pick<GroupCommitOptions, 'durability' | 'quotaPlants'> {
  readonly isServer: boolean
}

/** Opens a connection that reads and one that writes: of a server, in a thread of its own. */
export function connect(
  path: string,
  onFailure: (error: AppError) => void,
  { isServer, durability, quotaPlants, ...options }: ConnectOptions,
) {
  const identity = fileIdentity(path)
  const shared = { path, identity, changes: shareChanges(), checkedAtMs: shareCheckTime() }
  const writing = { ...shared, durability, quotaPlants }
  const thread = isServer ? startThread(writing) : undefined
  const open = thread?.open ?? openHere(writing)
  return {
    ...connectThread(shared, onFailure, { ...options, open, closesLast: true }),
    share: thread && ((): StoreShare => ({ ...shared, ...thread.addLine() })),
  }
}

/** Opens a connection that reads, and writes through the connection that another thread has opened. */
export const join = (share: StoreShare, onFailure: (error: AppError) => void, options: ThreadOptions) =>
  connectThread(share, onFailure, { ...options, open: joinThread(share), closesLast: false })

/** The connections of a thread to its store. Everything reads and writes through them. */
export type Connections = ReturnType<typeof connectThread>

/**
 * The first read, write or checkpoint that fails with `store_failed` ends all writing, and `onFailure` is called with its error:
 * after a failed sync nobody knows what is on disk, and a damaged page spreads. With `closesLast`, this thread also ends the
 * connection that writes.
 */
function connectThread(
  { path, identity, changes, checkedAtMs }: Omit<StoreShare, 'port'>,
  onFailure: (error: AppError) => void,
  { closesLast, ...options }: Omit<WriterOptions, 'onFailure'> & { readonly closesLast: boolean },
) {
  let failure: AppError | undefined
  let closing: Promise<void> | undefined

  const recordFailure = (error: unknown) => {
    if (!(error instanceof AppError) || error.kind !== 'store_failed' || failure !== undefined) return
    failure = error
    void writer.fail(error)
    onFailure(error)
  }
  const reader = openReader(path)
  // A thread starts a moment after the store was opened.
  if (fileIdentity(path) !== identity) throw movedAway(path)
  const { monotonicMs } = options
  const writer = openWriter({ ...options, onFailure: recordFailure })
  const selectDataVersion = reader.prepare('pragma data_version')
  const dataVersion = () => selectDataVersion.values()[0]?.[0]
  const versions = readVersions(changes, { checkedAtMs, requestCheck: writer.checkOthers, dataVersion, monotonicMs })

  const close = async () => {
    await writer.refuse(new AppError('store_busy'))
    // The last connection that closes brings the WAL into the database, unless it can only read.
    if (failure !== undefined) await writer.end(closesLast ? 'discard' : undefined)
    reader.close(true)
    if (failure !== undefined) return
    await writer.end(closesLast ? 'close' : undefined)
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
    checkpointedAtMs: () => changes.checkpointedAtMs[0] ?? 0,
    versions,
    /** Brings the WAL into the database and closes all. Further calls do nothing. */
    close(): Promise<void> {
      closing ??= close()
      return closing
    },
  }
}
