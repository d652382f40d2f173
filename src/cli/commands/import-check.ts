import { AppError } from '../../domain/error.ts'
import type { ConflictRule, OwnedPlant, PlantImport } from '../../domain/transfer.ts'
import type { StagingTable } from '../../store/file-tools.ts'
import type { Io } from '../io.ts'
import { pauses, showProgress, untilAborted } from '../long-task.ts'
import { LINE_MAX_BYTES, type LineBytes, parsePlantLine, readLines, refusalOf, TOO_LONG } from '../plant-lines.ts'

/** How many refused lines are printed. */
export const REFUSALS_TOLD_MAX = 20
/** How many lines are compared with the stored plants at once. */
const COMPARED_PLANTS = 5000

/** The bytes to import, and their number if it is known. */
export interface Input {
  readonly stream: AsyncIterable<Uint8Array>
  readonly bytes: number | undefined
}

/** An import, with the tables that it reads into and writes into. */
export interface ImportJob {
  /** The user of lines without a user. */
  readonly user: string | undefined
  readonly rule: ConflictRule
  readonly isAtomic: boolean
  readonly stagingTable: StagingTable
  readonly target: PlantImport
  /** Stops the import. */
  readonly signal: AbortSignal
  readonly io: Io
}

/** How many lines were read, and how many of them have the user and the id of an earlier line. */
export interface Read {
  readonly lines: number
  readonly repeated: number
}

/**
 * Reads all lines into the staging table. If it refuses lines, it prints them with their reasons and throws `file_unusable`. After
 * a signal it throws the reason of the signal.
 */
export async function checkLines(input: Input, job: ImportJob): Promise<Read> {
  const { signal, io } = job
  const refusals = collectRefusals(io)
  using progress = showProgress(io, 'bytes checked')
  const pause = pauses()
  let lines = 0
  let repeated = 0
  let bytes = 0
  for await (const batch of readLines(untilAborted(input.stream, signal), LINE_MAX_BYTES)) {
    for (const line of batch) {
      lines++
      if (line !== TOO_LONG) bytes += line.length + 1
      const refusal = take(line, lines, job)
      if (typeof refusal === 'string') refusals.record(lines, refusal)
      else if (refusal !== undefined) repeated++
    }
    progress.update(bytes, input.bytes)
    await pause(batch.length)
    signal.throwIfAborted()
  }
  await refusals.end(lines)
  return { lines, repeated }
}

/** Adds a line to the staging table. Returns the reason of a refusal, or the number of the line that it repeats. */
function take(line: LineBytes, number: number, { user, rule, stagingTable }: ImportJob): string | number | undefined {
  if (line === TOO_LONG) return `it is longer than ${LINE_MAX_BYTES} bytes.`
  let plant: OwnedPlant
  try {
    plant = parsePlantLine(line, user)
  } catch (error) {
    return refusalOf(error)
  }
  const first = stagingTable.add({ line: number, ...plant })
  return first !== undefined && rule === 'fail' ? `its user and id are those of line ${first}.` : first
}

/** Refuses lines with the user and the id of a stored plant, as `checkLines` does. */
export async function requireFree(
  { lines: total }: Read,
  { stagingTable, target, signal, io }: ImportJob,
): Promise<void> {
  const refusals = collectRefusals(io)
  using progress = showProgress(io, 'lines compared')
  const pause = pauses()
  let compared = 0
  for (const lines of stagingTable.batches(() => COMPARED_PLANTS)) {
    for (const { line, user, id } of await target.findExisting(lines)) {
      refusals.record(line, `the user ${user} has plant ${id} already.`)
    }
    compared += lines.length
    progress.update(compared, total)
    await pause(lines.length)
    signal.throwIfAborted()
  }
  await refusals.end(total)
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
