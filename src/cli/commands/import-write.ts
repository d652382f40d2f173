import type { ImportCounts, OwnedPlant, PlantImport } from '../../domain/transfer.ts'
import type { StagingTable } from '../../store/file-tools.ts'
import type { Io } from '../io.ts'
import { pauses } from '../pause.ts'
import { showProgress } from '../progress.ts'
import type { ImportRequest, Read } from './import-check.ts'

/**
 * The creates of a server wait no longer than 100 ms for an import: for the batch that is being written, of whose making
 * this is the usual time, for its sync, and for what is between their looks whether the lock is gone.
 */
const BATCH_MS = 20
/** After it, servers get the lock: they look for it more often. */
const PAUSE_MS = 10
/** Plants of the first batch, and of any. */
const BATCH_PLANTS = { first: 500, least: 100, most: 20_000 }
/** A batch is at most so many times as large as the one before it. */
const BATCH_GROWTH_MAX = 2

/** What became of an import: lines that are in, and what they did. */
interface Progressed extends ImportCounts {
  readonly lines: number
}

/**
 * Stores all lines of a staging table, in batches between which others can write. Calls `onStored` with the number of lines that are
 * stored for good, first with 0. Returns what the lines did.
 */
export async function importLines(
  stagingTable: StagingTable,
  target: PlantImport,
  read: Read,
  request: ImportRequest,
  onStored: (lines: number) => void,
  io: Io,
): Promise<ImportCounts> {
  const { rule, isAtomic, signal } = request
  let done: Progressed = { lines: 0, users: 0, created: 0, skipped: 0, replaced: 0 }
  onStored(0)
  if (isAtomic) {
    await io.tell('Creates and deletes of servers wait until all is in, or are refused.\n')
    await target.begin()
  }
  using progress = showProgress(io, 'lines imported')
  let size = BATCH_PLANTS.first
  const pause = pauses()
  let last: OwnedPlant | undefined
  for (;;) {
    const lines = stagingTable.read(last, size)
    if (lines.length === 0) break
    const { heldMs, ...counts } = await target.write(lines, rule)
    done = sumOf(done, counts, lines.length)
    if (!isAtomic) onStored(done.lines)
    last = lines.at(-1)
    progress.update(done.lines, read.lines)
    size = nextSize(lines.length, heldMs)
    await pause(lines.length, isAtomic ? 0 : PAUSE_MS)
    signal.throwIfAborted()
  }
  if (isAtomic) await target.commit()
  return withRepeated(done, read, request)
}

/** The size that would have taken the usual time, as far as one batch can tell. */
function nextSize(size: number, heldMs: number): number {
  const wanted = size * Math.min(BATCH_GROWTH_MAX, BATCH_MS / Math.max(heldMs, 1))
  return Math.round(Math.min(BATCH_PLANTS.most, Math.max(BATCH_PLANTS.least, wanted)))
}

function sumOf(done: Progressed, counts: ImportCounts, lines: number): Progressed {
  return {
    lines: done.lines + lines,
    users: done.users + counts.users,
    created: done.created + counts.created,
    skipped: done.skipped + counts.skipped,
    replaced: done.replaced + counts.replaced,
  }
}

/** What became of the lines that repeat another, of which one alone was imported. */
function withRepeated(done: Progressed, { again }: Read, { rule }: ImportRequest): Progressed {
  if (rule === 'replace') return { ...done, replaced: done.replaced + again }
  return { ...done, skipped: done.skipped + again }
}
