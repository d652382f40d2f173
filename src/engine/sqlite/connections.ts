// Tested in test/engine/sqlite/thread.test.ts.
import { AppError } from '../../error.ts'
import { type Durability, openReader } from './driver.ts'
import { toEngineError } from './errors.ts'
import { fileIdentity } from './files/file-system.ts'
import { movedAway } from './files/moved-files.ts'
import type { Program, Writes } from './program.ts'
import { readVersions, shareChanges, shareCheckTime } from './versions.ts'
import {
  createWriteQueue,
  joinThread,
  openHere,
  type StoreShare,
  type ThreadOptions,
  useThread,
  type WriterOptions,
} from './writer.ts'

export interface ConnectOptions extends ThreadOptions, Pick<WriterOptions, 'onEvent'> {
  /** Starts the thread that writes, which runs `runProgram`. Without it, this thread writes. */
  readonly startThread?: (() => Worker) | undefined
  readonly durability: Durability
  /** The settings of the program: data that a message between threads can have. */
  readonly settings: unknown
}

/** The connections of a thread to its store. Everything reads and writes through them. */
export type Connections<All extends Writes> = ReturnType<typeof connectThread<All>>

/** Opens a connection that reads and one that writes: with `startThread`, in a thread of its own. */
export function connect<All extends Writes>(
  program: Program,
  path: string,
  onFailure: (error: AppError) => void,
  { startThread, durability, settings, ...options }: ConnectOptions,
) {
  const identity = fileIdentity(path)
  const shared = { path, identity, changes: shareChanges(), checkedAtMs: shareCheckTime() }
  const writing = { ...shared, durability, settings }
  const thread = startThread && useThread(startThread(), writing)
  const open = thread?.open ?? openHere(program, writing)
  return {
    ...connectThread<All>(shared, onFailure, { ...options, open, closesLast: true }),
    share: thread && ((): StoreShare => ({ ...shared, ...thread.addLink() })),
  }
}

/** Opens a connection that reads, and writes through the connection that another thread of this process has opened. */
export const joinEngine = <All extends Writes>(
  share: StoreShare,
  onFailure: (error: AppError) => void,
  options: ThreadOptions,
) => connectThread<All>(share, onFailure, { ...options, onEvent() {}, open: joinThread(share), closesLast: false })

/**
 * The first read, write or checkpoint that fails with `store_failed` ends all writing, and `onFailure` is called with its error:
 * after a failed sync nobody knows what is on disk, and a damaged page spreads. With `closesLast`, this thread also ends the
 * connection that writes.
 */
function connectThread<All extends Writes>(
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
  const { monotonicMs, othersSeenWithinMs } = options
  const writer = createWriteQueue<All>({ ...options, onFailure: recordFailure })
  const selectDataVersion = reader.prepare('pragma data_version')
  const dataVersion = () => selectDataVersion.values()[0]?.[0]
  const requestCheck = writer.checkOthers
  const readers = { checkedAtMs, requestCheck, dataVersion, monotonicMs, othersSeenWithinMs }
  const versions = readVersions(changes, readers)

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
        const error = toEngineError(cause, path)
        recordFailure(error)
        throw error
      }
    },
    writer,
    /** The Unix time at which a checkpoint last brought the whole WAL into the database, or at which the store was opened. */
    checkpointedAtMs: () => changes.checkpointedAtMs[0] ?? 0,
    versions,
    /** Brings the WAL into the database and closes all. Further calls do nothing. */
    close(): Promise<void> {
      closing ??= close()
      return closing
    },
  }
}
