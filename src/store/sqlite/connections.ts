import type { Database } from 'bun:sqlite'
import { AppError } from '../../domain/error.ts'
import { startCheckpoints } from './checkpoints.ts'
import { openReader, openWriter } from './connection.ts'
import { toAppError } from './errors.ts'

/** The two connections of a store, and the one way through which everything reads and writes. */
export interface Connections {
  readonly reader: Database
  readonly writer: Database
  /** Runs a read. Its failure is said in the store's terms. */
  read<T>(work: () => T): Promise<T>
  /**
   * Runs a write of about so many bytes of text. Its failure is said in the store's terms; after `store_failed` no
   * further write is begun.
   */
  write<T>(work: () => T, textBytes?: number): Promise<T>
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
  let failure: AppError | undefined
  let isOpen = true

  const run = async <T>(work: () => T, duringWrite: boolean): Promise<T> => {
    try {
      return work()
    } catch (cause) {
      throw noteFailure(toAppError(cause, { duringWrite }))
    }
  }
  const noteFailure = (error: unknown): unknown => {
    if (error instanceof AppError && error.kind === 'store_failed' && failure === undefined) {
      failure = error
      onFailure(error)
    }
    return error
  }
  const checkpoints = startCheckpoints(writer, (error) => noteFailure(toAppError(error, { duringWrite: false })))

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
    write: async (work, textBytes = 0) => {
      if (failure !== undefined) throw new AppError('store_failed', { cause: failure })
      const result = await run(work, true)
      checkpoints.noteWrite(textBytes)
      return result
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

function openBoth(path: string): Pick<Connections, 'writer' | 'reader'> {
  const writer = openWriter(path)
  try {
    return { writer, reader: openReader(path) }
  } catch (error) {
    writer.close(true)
    throw error
  }
}
