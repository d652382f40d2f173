import type { Database } from 'bun:sqlite'
import { AppError } from '../../domain/error.ts'
import { startCheckpoints } from './checkpoints.ts'
import { BUSY_TIMEOUT_MS, openReader, openWriter } from './connection.ts'
import { toAppError } from './errors.ts'
import { fileIdentity } from './inspect.ts'

/** How often a write looks whether a lock is gone. */
const BUSY_RETRY_MS = 5

/** The two connections of a store, and the one way through which everything reads and writes. */
export interface Connections {
  readonly reader: Database
  readonly writer: Database
  /** Runs a read. Its failure is said in the store's terms. */
  read<T>(work: () => T): Promise<T>
  /**
   * Runs a write of so much text. A lock of another process is waited for, up to `BUSY_TIMEOUT_MS`. Its failure is said
   * in the store's terms; after `store_failed` no further write is begun.
   */
  write<T>(work: () => T, textLength?: number): Promise<T>
  /** Ends both, after the WAL was brought into the database. Once more it does nothing. */
  close(): void
  /** Ends both, and leaves the files as they are: the next start recovers from them. */
  discard(): void
}

/**
 * Opens both connections. `onFailure` is told once, by the first read, write or checkpoint that fails so that nothing
 * may be written any more: a sync that failed proves nothing about what is on disk, and a damaged page spreads.
 */
export function connect(path: string, onFailure: (error: AppError) => void): Connections {
  const { writer, reader } = openBoth(path)
  const opened = fileIdentity(path)
  let failure: AppError | undefined
  let isOpen = true

  const run = async <T>(work: () => T, duringWrite: boolean): Promise<T> => {
    // Cut requests may go on a little; what they ask for then is not there any more.
    if (!isOpen) throw new AppError('store_busy')
    try {
      return work()
    } catch (cause) {
      throw noteFailure(toAppError(cause, { duringWrite, path }))
    }
  }
  const noteFailure = (error: unknown): unknown => {
    if (error instanceof AppError && error.kind === 'store_failed' && failure === undefined) {
      failure = error
      onFailure(error)
    }
    return error
  }
  /** What was written into a file that is not at its path any more is written nowhere. */
  const inSameFile = <T>(work: () => T): T => {
    const done = work()
    if (fileIdentity(path) !== opened) throw movedAway(path)
    return done
  }
  const translate = (error: unknown) => toAppError(error, { duringWrite: false, path })
  const checkpoints = startCheckpoints(writer, translate, noteFailure)

  const discard = () => {
    if (!isOpen) return
    isOpen = false
    checkpoints.stop()
    // The last connection to be closed checkpoints, unless it can only read.
    writer.close(true)
    reader.close(true)
  }

  return {
    reader,
    writer,
    read: (work) => run(work, false),
    write: async (work, textLength = 0) => {
      const deadlineMs = performance.now() + BUSY_TIMEOUT_MS
      for (;;) {
        if (failure !== undefined) throw new AppError('store_failed', { cause: failure })
        try {
          const result = await run(() => inSameFile(work), true)
          checkpoints.noteWrite(textLength)
          return result
        } catch (error) {
          const isLocked = error instanceof AppError && error.kind === 'store_busy' && isOpen
          if (!isLocked || performance.now() > deadlineMs) throw error
        }
        // A write that found a lock has done nothing. Waiting here leaves the thread to others; SQLite would block it.
        await Bun.sleep(BUSY_RETRY_MS)
      }
    },
    close() {
      if (failure !== undefined) return discard()
      if (!isOpen) return
      isOpen = false
      checkpoints.stop()
      reader.close(true)
      try {
        checkpoints.run()
      } finally {
        writer.close(true)
      }
    },
    discard,
  }
}

const movedAway = (path: string) =>
  new AppError('store_failed', { outcomeIsUnknown: true, cause: new Error(`${path} was moved, replaced or deleted`) })

function openBoth(path: string): Pick<Connections, 'writer' | 'reader'> {
  const writer = openWriter(path)
  try {
    return { writer, reader: openReader(path) }
  } catch (error) {
    writer.close(true)
    throw error
  }
}
