import type { Database } from 'bun:sqlite'
import { AppError } from '../../domain/error.ts'

/** Size at which the WAL is brought into the database. It is reused from its beginning then, and grows no further. */
const CHECKPOINT_WAL_BYTES = 4 * 1024 * 1024
/** What the smallest write adds to it: a page of the table, and now and then one of an index. */
const WRITE_BYTES_MIN = 8192

/**
 * Brings the WAL into the database now and then, in a turn of the event loop of its own, so that no answer waits for
 * it. A checkpoint that finds readers or writers in its way does what it can and leaves the rest for the next.
 */
export function startCheckpoints(
  writer: Database,
  translate: (error: unknown) => unknown,
  onError: (error: unknown) => void,
) {
  let walBytes = 0
  let scheduled: ReturnType<typeof setImmediate> | undefined

  /** Throws where a sync failed. Without space there is nothing to be done: the WAL keeps what it has. */
  const run = () => {
    walBytes = 0
    try {
      writer.run('pragma wal_checkpoint(passive)')
    } catch (error) {
      const translated = translate(error)
      if (!(translated instanceof AppError && translated.kind === 'store_full')) throw translated
    }
  }

  return {
    run,
    /** Notes a write of so much text. */
    noteWrite(textLength: number) {
      walBytes += WRITE_BYTES_MIN + textLength
      if (walBytes < CHECKPOINT_WAL_BYTES) return
      scheduled ??= setImmediate(() => {
        scheduled = undefined
        try {
          run()
        } catch (error) {
          onError(error)
        }
      })
    },
    stop: () => clearImmediate(scheduled),
  }
}
