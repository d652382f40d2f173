import type { ImportCounts } from '../../domain/transfer.ts'
import { pauses, showProgress } from '../long-task.ts'
import type { ImportJob, Read } from './import-check.ts'

/**
 * The usual time of a batch. A create of a server waits at most 100 ms for an import: for a batch, for its fsync, and until the
 * server tries the lock again.
 */
const BATCH_MS = 20
/** The pause after a batch. Servers try the lock more often than this, so they get it then. */
const PAUSE_MS = 10
/** How many plants the first batch has, and every batch at least and at most. */
const BATCH_PLANTS = { first: 500, least: 100, most: 20_000 }
/** How many times larger than the batch before it a batch may be. */
const BATCH_GROWTH_MAX = 2

/**
 * Stores all lines of the staging table, in batches between which servers can write. Calls `onStored` with the number of lines
 * that are durable, first with 0.
 */
export async function importLines(
  read: Read,
  job: ImportJob,
  onStored: (lines: number) => void,
): Promise<ImportCounts> {
  const { rule, isAtomic, stagingTable, target, signal, io } = job
  const done = { lines: 0, users: 0, created: 0, skipped: 0, replaced: 0 }
  onStored(0)
  if (isAtomic) {
    await io.tell('Creates and deletes of servers wait until all is in, or are refused.\n')
    await target.begin()
  }
  using progress = showProgress(io, 'lines imported')
  let size = BATCH_PLANTS.first
  const pause = pauses()
  for (const lines of stagingTable.batches(() => size)) {
    const { heldMs, ...counts } = await target.write(lines, rule)
    for (const name of ['users', 'created', 'skipped', 'replaced'] as const) done[name] += counts[name]
    done.lines += lines.length
    if (!isAtomic) onStored(done.lines)
    progress.update(done.lines, read.lines)
    size = nextSize(lines.length, heldMs)
    await pause(lines.length, isAtomic ? 0 : PAUSE_MS)
    signal.throwIfAborted()
  }
  if (isAtomic) await target.commit()
  // The staging table has only one of the lines that repeat each other.
  done[rule === 'replace' ? 'replaced' : 'skipped'] += read.repeated
  return done
}

/** The size that would have taken the usual time, as far as one batch can tell. */
function nextSize(size: number, heldMs: number): number {
  const wanted = size * Math.min(BATCH_GROWTH_MAX, BATCH_MS / Math.max(heldMs, 1))
  return Math.round(Math.min(BATCH_PLANTS.most, Math.max(BATCH_PLANTS.least, wanted)))
}
