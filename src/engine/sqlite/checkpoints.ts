import type { Database } from 'bun:sqlite'
import { kindOf } from '../../error.ts'
import type { EngineEvent } from '../observer.ts'
import { rowsOf } from './driver.ts'

/** After each growth by this size a checkpoint brings the WAL into the database. Then SQLite reuses it from its beginning. */
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
  // It only counts the frames in the WAL, which takes some microseconds.
  const noop = writer.prepare('pragma wal_checkpoint(noop)')
  let framesTried = 0
  /** What `run` returned last. */
  let heldAt: ReturnType<typeof run>
  /** The operator is told of the WAL at this size, and each time it has doubled since. */
  let bytesToTell = LONG_WAL_BYTES
  writer.run(`pragma journal_size_limit = ${KEPT_WAL_BYTES}`)

  /**
   * Returns what keeps a part of the WAL out of the database: readers, given the number of frames that are in it, or the
   * checkpoint of another process. Returns nothing if the whole WAL is in the database, or the disk is full.
   */
  const run = (mode: 'passive' | 'truncate'): bigint | 'checkpoint' | undefined => {
    try {
      const [[, frames, checkpointed] = [0n, 0n, 0n]] = rowsOf<CheckpointRow>(writer, `pragma wal_checkpoint(${mode})`)
      if (checkpointed < 0n) return 'checkpoint'
      if (checkpointed < frames) return checkpointed
      onWhole()
      return undefined
    } catch (error) {
      const translated = translate(error)
      if (kindOf(translated) !== 'store_full') throw translated
      // The disk is full. The WAL keeps its frames.
      return undefined
    }
  }

  return {
    run,
    /** Runs a checkpoint if the WAL has grown enough since the last one. Returns a warning if a reader makes the WAL long. */
    runIfDue(): EngineEvent | undefined {
      const framesNow = Number(noop.values()[0]?.[1])
      // SQLite has reused the WAL from its beginning.
      if (framesNow < framesTried) {
        framesTried = 0
        heldAt = undefined
        bytesToTell = LONG_WAL_BYTES
      }
      if (framesNow - framesTried < CHECKPOINT_WAL_FRAMES) return undefined
      framesTried = framesNow
      const heldBefore = heldAt
      heldAt = run('passive')
      const walBytes = framesNow * FRAME_BYTES
      // Others come and go. The operator should know only of one that stops two checkpoints at the same frame.
      if (heldAt === undefined || heldAt !== heldBefore || walBytes < bytesToTell) return undefined
      while (bytesToTell <= walBytes) bytesToTell *= 2
      const message =
        'a program holds a read transaction or a checkpoint open, so that the WAL is not reused and grows: end that program'
      return { level: 'warn', message, sizes: { walBytes } }
    },
  }
}
