// Tested in test/engine/sqlite/failure.test.ts.
import type { Database } from 'bun:sqlite'
import { AppError } from '../../error.ts'
import { LOCK_MAX_WAIT_MS } from '../group-queue.ts'
import { isWalIndexRefused, toEngineError } from './errors.ts'
import { pragmaNumber } from './migrate.ts'

/**
 * Returns a function that commits the transaction of a connection.
 *
 * SQLite syncs the frames of a transaction before it extends the WAL-index, at frame 4063 and every 4096 frames after it. If
 * the disk has room for the frames but not for the index, the commit fails, and the next recovery would replay the frames. So
 * the function overwrites them before it throws. It throws SQLite's error as an `AppError`, which says if the outcome is
 * unknown.
 */
export function prepareCommit(writer: Database, path: string): () => void {
  const commit = writer.prepare('commit')
  return () => {
    try {
      commit.run()
    } catch (error) {
      if (isWalIndexRefused(error)) overwriteFrames(writer, commit)
      throw toEngineError(error, path, { duringCommit: true })
    }
  }
}

/**
 * Overwrites the first frame of the transaction that has just failed, durably. Recovery stops at the first frame whose checksum
 * does not continue that of the frame before (https://sqlite.org/walformat.html), so it ignores the other frames, too.
 */
function overwriteFrames(writer: Database, commit: { run(): unknown }): void {
  const busyTimeoutMs = pragmaNumber(writer, 'busy_timeout')
  const durability = pragmaNumber(writer, 'synchronous')
  try {
    writer.run(`pragma busy_timeout = ${LOCK_MAX_WAIT_MS}`)
    writer.run('pragma synchronous = full')
    writer.run('begin immediate')
    // The same value again: this writes one page, and changes nothing.
    writer.run(`pragma application_id = ${pragmaNumber(writer, 'application_id')}`)
    try {
      commit.run()
    } catch (error) {
      // The index is refused after the sync again, so the frame is overwritten.
      if (!isWalIndexRefused(error)) throw error
    }
    writer.run(`pragma synchronous = ${durability}`)
    writer.run(`pragma busy_timeout = ${busyTimeoutMs}`)
  } catch (cause) {
    throw new AppError('store_failed', { outcomeIsUnknown: true, cause })
  }
}
