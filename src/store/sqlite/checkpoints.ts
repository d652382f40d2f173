import type { Database } from 'bun:sqlite'
import { AppError } from '../../domain/error.ts'
import { rowsOf } from './connection.ts'
import type { WalIndex } from './wal-index.ts'

/** Size by which the WAL grows until it is brought into the database. It is reused from its beginning then. */
const CHECKPOINT_WAL_BYTES = 4 * 1024 * 1024
/** What a page takes in the WAL (https://sqlite.org/walformat.html): itself, by default of SQLite, and a header. */
const FRAME_BYTES = 4096 + 24
const CHECKPOINT_WAL_FRAMES = Math.floor(CHECKPOINT_WAL_BYTES / FRAME_BYTES)

/**
 * Brings the WAL into the database. A checkpoint that finds readers in its way does what it can and leaves the rest for
 * the next. What fails is thrown in the terms of `translate`.
 */
export function checkpoints(
  writer: Database,
  walIndex: Pick<WalIndex, 'frames'> | undefined,
  translate: (error: unknown) => unknown,
) {
  const countFrames = walIndex?.frames ?? framesBySql(writer)
  let framesTried = 0

  const run = (mode: 'passive' | 'truncate') => {
    try {
      writer.run(`pragma wal_checkpoint(${mode})`)
    } catch (error) {
      const translated = translate(error)
      // Without space there is nothing to be done: the WAL keeps what it has.
      if (!(translated instanceof AppError && translated.kind === 'store_full')) throw translated
    }
  }

  return {
    run,
    /** Runs one if the WAL has grown enough since the last. */
    runIfDue() {
      const framesNow = countFrames()
      // After a checkpoint that was complete the WAL begins anew.
      if (framesNow < framesTried) framesTried = 0
      if (framesNow - framesTried < CHECKPOINT_WAL_FRAMES) return
      framesTried = framesNow
      run('passive')
    },
  }
}

/** The same without a WAL-index to be read, in some microseconds. */
function framesBySql(writer: Database): () => number {
  const look = writer.prepare('pragma wal_checkpoint(noop)')
  return () => {
    const [[, frames] = []] = rowsOf<[busy: bigint, frames: bigint, checkpointed: bigint]>(look.values())
    return Number(frames)
  }
}
