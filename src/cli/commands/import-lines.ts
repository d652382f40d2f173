import { AppError } from '../../domain/error.ts'
import type { ConflictRule } from '../../domain/plant.ts'
import type { ImportCounts, PlantImport } from '../../store/file-tools.ts'
import type { Io } from '../io.ts'
import { showBatches, untilAborted } from '../long-task.ts'
import { LINE_MAX_BYTES, type LineBytes, parsePlantLine, readLines, TOO_LONG } from '../plant-lines.ts'

/** How many refused lines are printed. */
export const REFUSALS_TOLD_MAX = 20
/** How many lines are compared with the stored plants at once. */
const COMPARED_PLANTS = 5000
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

/** An import, and how far it has come. */
export interface ImportJob {
  /** The bytes to import, and their number if it is known. */
  readonly input: { readonly stream: AsyncIterable<Uint8Array>; readonly bytes: number | undefined }
  /** The user of lines without a user. */
  readonly user: string | undefined
  readonly rule: ConflictRule
  readonly isAtomic: boolean
  readonly target: PlantImport
  /** How many lines were read, and how many of them have the user and the id of an earlier line. */
  lines: number
  repeated: number
  /** How many lines are durable. */
  stored: number
}

/**
 * Checks all lines, then stores their plants. If it refuses lines, it prints them with their reasons and throws `file_unusable`.
 * After a signal it throws the reason of the signal.
 */
export async function importLines(job: ImportJob, signal: AbortSignal, io: Io): Promise<ImportCounts> {
  await io.tell(`The lines wait in a file without a name in ${job.target.directory} until they are imported.\n`)
  await checkLines(job, signal, io)
  if (job.rule === 'fail') await requireFree(job, signal, io)
  return await storeLines(job, signal, io)
}

/** Reads all lines into the staging table. */
async function checkLines(job: ImportJob, signal: AbortSignal, io: Io): Promise<void> {
  const { stream, bytes: total } = job.input
  const refusals = collectRefusals(io)
  using batches = showBatches(io, signal, 'bytes checked')
  let bytes = 0
  for await (const batch of readLines(untilAborted(stream, signal), LINE_MAX_BYTES)) {
    for (const line of batch) {
      job.lines++
      if (line !== TOO_LONG) bytes += line.length + 1
      const refusal = take(line, job)
      if (refusal !== undefined) refusals.record(job.lines, refusal)
    }
    await batches.end(batch.length, bytes, total)
  }
  await refusals.end(job.lines)
}

/** Adds the line that was read last to the staging table. Returns the reason if it refuses the line. */
function take(line: LineBytes, job: ImportJob): string | undefined {
  const plant = parsePlantLine(line, job.user)
  if (typeof plant === 'string') return plant
  const first = job.target.add(plant, job.lines)
  if (first === undefined) return undefined
  if (job.rule === 'fail') return `its user and id are those of line ${first}.`
  job.repeated++
  return undefined
}

/** Refuses lines with the user and the id of a stored plant. */
async function requireFree({ target, lines }: ImportJob, signal: AbortSignal, io: Io): Promise<void> {
  const refusals = collectRefusals(io)
  using batches = showBatches(io, signal, 'lines compared')
  let compared = 0
  for (const batch of target.batches(() => COMPARED_PLANTS)) {
    for (const { line, user, id } of await target.findExisting(batch)) {
      refusals.record(line, `the user ${user} has plant ${id} already.`)
    }
    compared += batch.plants
    await batches.end(batch.plants, compared, lines)
  }
  await refusals.end(lines)
}

/** Stores all plants of the staging table, in batches between which servers can write. */
async function storeLines(job: ImportJob, signal: AbortSignal, io: Io): Promise<ImportCounts> {
  const { rule, isAtomic, target } = job
  const done = { users: 0, created: 0, skipped: 0, replaced: 0 }
  let written = 0
  if (isAtomic) {
    await io.tell('Creates and deletes of servers wait until all is in, or are refused.\n')
    await target.begin()
  }
  using batches = showBatches(io, signal, 'lines imported')
  let size = BATCH_PLANTS.first
  for (const batch of target.batches(() => size)) {
    const { heldMs, ...counts } = await target.write(batch)
    for (const name of ['users', 'created', 'skipped', 'replaced'] as const) done[name] += counts[name]
    written += batch.plants
    if (!isAtomic) job.stored = written
    size = nextSize(batch.plants, heldMs)
    await batches.end(batch.plants, written, job.lines, isAtomic ? 0 : PAUSE_MS)
  }
  if (isAtomic) target.commit()
  // The staging table has only one of the lines that repeat each other.
  done[rule === 'replace' ? 'replaced' : 'skipped'] += job.repeated
  return done
}

/** The size that would have taken the usual time, as far as one batch can tell. */
function nextSize(size: number, heldMs: number): number {
  const wanted = size * Math.min(BATCH_GROWTH_MAX, BATCH_MS / Math.max(heldMs, 1))
  return Math.round(Math.min(BATCH_PLANTS.most, Math.max(BATCH_PLANTS.least, wanted)))
}

/** Counts refused lines and prints the first of them. They may come in any order. */
function collectRefusals({ tell }: Pick<Io, 'tell'>) {
  const first: { readonly line: number; readonly reason: string }[] = []
  let count = 0
  return {
    record(line: number, reason: string): void {
      count++
      if (first.length === REFUSALS_TOLD_MAX && line > (first.at(-1)?.line ?? 0)) return
      first.push({ line, reason })
      first.sort((a, b) => a.line - b.line)
      first.splice(REFUSALS_TOLD_MAX)
    },
    async end(lines: number): Promise<void> {
      if (count === 0) return
      for (const { line, reason } of first) await tell(`line ${line}: ${reason}\n`)
      if (count > first.length) await tell(`and ${count - first.length} more.\n`)
      throw new AppError('file_unusable', {
        message: `Of ${lines} lines ${count} are refused: nothing was imported.`,
      })
    },
  }
}
