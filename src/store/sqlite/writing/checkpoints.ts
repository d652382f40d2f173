import type { Database } from 'bun:sqlite'
import { AppError } from '../../../domain/error.ts'
import type { StoreEvent } from '../../engine.ts'
import { rowsOf } from '../connection.ts'

/** After each growth by this size a checkpoint brings the WAL into the database. Then SQLite reuses the WAL from its beginning. */
const CHECKPOINT_WAL_BYTES = 4 * 1024 * 1024
/** SQLite cuts the WAL's file to this size when it reuses the WAL. Usually the file is smaller. */
export const KEPT_WAL_BYTES = 2 * CHECKPOINT_WAL_BYTES
/** From this size of the WAL on, the store tells its operator that a reader keeps SQLite from reusing the WAL. */
export const LONG_WAL_BYTES = 8 * CHECKPOINT_WAL_BYTES
/** The size of a page in the WAL with its header (https://sqlite.org/walformat.html), for SQLite's default page size. */
const FRAME_BYTES = 4096 + 24
const CHECKPOINT_WAL_FRAMES = Math.floor(CHECKPOINT_WAL_BYTES / FRAME_BYTES)

/** The result of a checkpoint (https://sqlite.org/pragma.html#pragma_wal_checkpoint). */
type CheckpointRow = [busy: bigint, frames: bigint, checkpointed: bigint]

/**
 * Runs checkpoints, which bring the WAL into the database. If a reader needs a part of the WAL, the checkpoint leaves that part
 * for the next one. `onWhole` is called after each checkpoint that leaves nothing. `translate` translates SQLite's errors.
 */
export function checkpoints(writer: Database, translate: (error: unknown) => unknown, onWhole = () => {}) {
  const countFrames = frameCounter(writer)
  const statements = {
    passive: writer.prepare('pragma wal_checkpoint(passive)'),
    truncate: writer.prepare('pragma wal_checkpoint(truncate)'),
  }
  const length = watchLength()
  let framesTried = 0
  /** The frames that the last checkpoint reached, if a reader stopped it there. */
  let heldAt: bigint | undefined
  writer.run(`pragma journal_size_limit = ${KEPT_WAL_BYTES}`)

  /** Returns the number of frames in the database, if readers keep the rest out of it. */
  const run = (mode: keyof typeof statements): bigint | undefined => {
    try {
      const [[, frames, checkpointed] = [0n, 0n, 0n]] = rowsOf<CheckpointRow>(statements[mode].values())
      if (checkpointed < frames) return checkpointed
      onWhole()
      return undefined
    } catch (error) {
      const translated = translate(error)
      if (!(translated instanceof AppError && translated.kind === 'store_full')) throw translated
      // The disk is full. The WAL keeps its frames.
      return undefined
    }
  }

  return {
    run,
    /** Runs a checkpoint if the WAL has grown enough since the last one. Returns what the operator should know of its length. */
    runIfDue(): StoreEvent | undefined {
      const framesNow = countFrames()
      // SQLite has reused the WAL from its beginning.
      if (framesNow < framesTried) {
        framesTried = 0
        heldAt = undefined
      }
      if (framesNow - framesTried >= CHECKPOINT_WAL_FRAMES) {
        framesTried = framesNow
        const heldBefore = heldAt
        heldAt = run('passive')
        // Readers come and go. The operator should know only of one that stops two checkpoints at the same frame.
        if (heldAt !== undefined && heldAt === heldBefore) return length.tellLong(framesNow * FRAME_BYTES)
      }
      return length.tellShort(framesNow * FRAME_BYTES)
    },
  }
}

/** Tells when the WAL has become long, each time it has doubled since, and when it is short again. */
function watchLength() {
  let bytesToTell = LONG_WAL_BYTES
  return {
    tellLong(walBytes: number): StoreEvent | undefined {
      if (walBytes < bytesToTell) return undefined
      while (bytesToTell <= walBytes) bytesToTell *= 2
      const message =
        'a program holds a read transaction open, so that the WAL is not reused and grows: end that program'
      return { level: 'warn', message, sizes: { walBytes } }
    },
    tellShort(walBytes: number): StoreEvent | undefined {
      if (walBytes >= LONG_WAL_BYTES || bytesToTell === LONG_WAL_BYTES) return undefined
      bytesToTell = LONG_WAL_BYTES
      return { level: 'info', message: 'the WAL is short again', sizes: { walBytes } }
    },
  }
}

/** Returns a function that counts the frames in the WAL. It takes some microseconds. */
function frameCounter(writer: Database): () => number {
  const select = writer.prepare('pragma wal_checkpoint(noop)')
  return () => {
    const [[, frames] = []] = rowsOf<CheckpointRow>(select.values())
    return Number(frames)
  }
}
