import type { Database } from 'bun:sqlite'
import { AppError } from '../../domain/error.ts'
import type { StoreEvent } from '../options.ts'
import { rowsOf } from './connection.ts'
import type { WalIndex } from './versions/wal-index.ts'

/** Size by which the WAL grows until it is brought into the database. It is reused from its beginning then. */
const CHECKPOINT_WAL_BYTES = 4 * 1024 * 1024
/** Size to which the file of a WAL that has grown is cut when it is reused. Usually it is smaller. */
export const KEPT_WAL_BYTES = 2 * CHECKPOINT_WAL_BYTES
/** Size of a WAL from which on the operator is told that readers keep it from being reused. */
export const LONG_WAL_BYTES = 8 * CHECKPOINT_WAL_BYTES
/** What a page takes in the WAL (https://sqlite.org/walformat.html): itself, by default of SQLite, and a header. */
const FRAME_BYTES = 4096 + 24
const CHECKPOINT_WAL_FRAMES = Math.floor(CHECKPOINT_WAL_BYTES / FRAME_BYTES)

/** What a checkpoint says of itself (https://sqlite.org/pragma.html#pragma_wal_checkpoint). */
type CheckpointRow = [busy: bigint, frames: bigint, checkpointed: bigint]

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
  const statements = {
    passive: writer.prepare('pragma wal_checkpoint(passive)'),
    truncate: writer.prepare('pragma wal_checkpoint(truncate)'),
  }
  const length = watchLength()
  let framesTried = 0
  let heldAt: bigint | undefined
  writer.run(`pragma journal_size_limit = ${KEPT_WAL_BYTES}`)

  /** Returns how many frames are in the database now, if readers keep the rest from it. */
  const run = (mode: keyof typeof statements): bigint | undefined => {
    try {
      const [[, frames, checkpointed] = [0n, 0n, 0n]] = rowsOf<CheckpointRow>(statements[mode].values())
      return checkpointed < frames ? checkpointed : undefined
    } catch (error) {
      const translated = translate(error)
      if (!(translated instanceof AppError && translated.kind === 'store_full')) throw translated
      // Without space there is nothing to be done: the WAL keeps what it has.
      return undefined
    }
  }

  return {
    run,
    /** Runs one if the WAL has grown enough since the last. Returns what the operator should know of its length. */
    runIfDue(): StoreEvent | undefined {
      const framesNow = countFrames()
      // After a checkpoint that was complete the WAL begins anew.
      if (framesNow < framesTried) {
        framesTried = 0
        heldAt = undefined
      }
      if (framesNow - framesTried >= CHECKPOINT_WAL_FRAMES) {
        framesTried = framesNow
        const heldBefore = heldAt
        heldAt = run('passive')
        // Readers come and go. One that was there at the last checkpoint, and still is, does not.
        if (heldAt !== undefined && heldAt === heldBefore) return length.tellLong(framesNow * FRAME_BYTES)
      }
      return length.tellShort(framesNow * FRAME_BYTES)
    },
  }
}

/** Tells that the WAL has become long, and again when it has doubled; after that, that it is short again. */
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

/** The same without a WAL-index to be read, in some microseconds. */
function framesBySql(writer: Database): () => number {
  const look = writer.prepare('pragma wal_checkpoint(noop)')
  return () => {
    const [[, frames] = []] = rowsOf<CheckpointRow>(look.values())
    return Number(frames)
  }
}
