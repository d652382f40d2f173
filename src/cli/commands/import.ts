import { setImmediate as nextTurn } from 'node:timers/promises'
import type { Command } from '@commander-js/extra-typings'
import { OPTIONS } from '../../config.ts'
import { AppError } from '../../domain/error.ts'
import type { ConflictRule } from '../../domain/plant.ts'
import type { PlantImport } from '../../store/engine.ts'
import { engineOf } from '../../store/open.ts'
import { defineCommand } from '../command.ts'
import { type Input, openInput } from '../input.ts'
import type { Io } from '../io.ts'
import { runUntilSignal, showProgress } from '../long-task.ts'
import { counted, toJson } from '../output.ts'
import { LINE_MAX_BYTES, parsePlantLine, readLines } from '../plant-lines.ts'

/** How many refused lines are printed. */
export const REFUSALS_TOLD_MAX = 20

/** An import, and how far it has come. */
interface ImportJob {
  readonly input: Input
  /** The user of lines without a user. */
  readonly user: string | undefined
  readonly rule: ConflictRule
  readonly isAtomic: boolean
  readonly target: PlantImport
  /** How many lines were read. */
  lines: number
}

/** `import`: checks all lines, then stores their plants. If it refuses a line, it prints the reason and stores nothing. */
export const importCommand = (program: Command, io: Io): void => {
  defineCommand(program, 'import', {
    does: 'Stores plants from lines of JSON in the form of export. Reads stdin without a file.',
    examples: ['import plants.jsonl', 'import - --user me --on-conflict skip'],
    exits: { failed: 'A line is refused, or the file cannot be read.' },
    options: [OPTIONS.userOfLines, OPTIONS.onConflict, OPTIONS.atomic, OPTIONS.json, OPTIONS.database],
  })
    .argument('[file]', 'The lines, or - for stdin.')
    .action(async (file, { database, user, onConflict: rule, atomic: isAtomic = false, json }) => {
      const input = await openInput(file, io)
      const tools = await engineOf(database).fileTools()
      using target = await tools.openImport(rule, io)
      const job: ImportJob = { input, user, rule, isAtomic, target, lines: 0 }
      const importAll = async (signal: AbortSignal) => {
        await checkLines(job, signal, io)
        if (rule === 'fail') await requireFree(job, io)
        await storeLines(job, signal, io)
      }
      await runUntilSignal(io, importAll, () => describeStored(job))
      const { created, users } = target.counts
      // The other lines have the user and the id of a stored plant or of another line.
      const others = job.lines - created
      const [skipped, replaced] = rule === 'replace' ? [0, others] : [others, 0]
      await io.tell(
        `Imported ${counted(job.lines, 'line')} into ${database}: created ${counted(created, 'plant')}, skipped ${skipped}, replaced ${replaced}.`,
      )
      if (users > 0)
        await io.tell(`Created ${counted(users, 'user')} without a token: plantstore token create makes one.`)
      if (json) await io.print(toJson({ lines: job.lines, created, skipped, replaced, createdUsers: users }))
    })
}

/** How far an import came, and how to go on. With `fail` the lines that are stored would be refused. */
function describeStored({ target, lines, rule }: ImportJob): string {
  const { durable } = target.counts
  if (durable === 0) return 'nothing was imported. Run the same command again.'
  const option = rule === 'fail' ? ' with --on-conflict skip' : ''
  return `${durable} of ${counted(lines, 'line')} are in. Run the same command again${option} to import the rest.`
}

/** Reads all lines into the staging table. */
async function checkLines(job: ImportJob, signal: AbortSignal, io: Io): Promise<void> {
  const { stream, bytes: total } = job.input
  const refusals = collectRefusals(io)
  using progress = showProgress(io)
  let bytes = 0
  for await (const batch of readLines(stream, LINE_MAX_BYTES)) {
    signal.throwIfAborted()
    for (const line of batch) {
      job.lines++
      bytes += line.length + 1
      const refusal = take(line, job)
      if (refusal !== undefined) refusals.record(job.lines, refusal)
    }
    progress.update(bytes, total, `${counted(job.lines, 'plant')} checked`)
  }
  await refusals.end(job.lines)
}

/** Adds the line that was read last to the staging table. Returns the reason if it refuses the line. */
function take(line: Uint8Array, job: ImportJob): string | undefined {
  const plant = parsePlantLine(line, job.user)
  if (typeof plant === 'string') return plant
  const first = job.target.add(plant, job.lines)
  return first !== undefined && job.rule === 'fail' ? `its user and id are those of line ${first}.` : undefined
}

/** Refuses lines with the user and the id of a stored plant. */
async function requireFree({ target, lines }: ImportJob, io: Io): Promise<void> {
  const refusals = collectRefusals(io)
  target.findExisting(({ line, user, id }) => refusals.record(line, `the user ${user} has plant ${id} already.`))
  await refusals.end(lines)
}

/** Stores all plants of the staging table. */
async function storeLines({ lines, isAtomic, target }: ImportJob, signal: AbortSignal, io: Io) {
  if (isAtomic) await io.tell('Creates and deletes of servers wait until all is in, or are refused.')
  using progress = showProgress(io)
  for await (const written of target.store(isAtomic)) {
    progress.update(written, lines, `${written} of ${lines} plants imported`)
    // Signals need a turn of the event loop.
    await nextTurn()
    signal.throwIfAborted()
  }
}

/** Counts refused lines and keeps the first of them, to print them at the end. */
function collectRefusals({ tell }: Pick<Io, 'tell'>) {
  const first: string[] = []
  let count = 0
  return {
    record(line: number | bigint, reason: string): void {
      count++
      if (first.length < REFUSALS_TOLD_MAX) first.push(`line ${line}: ${reason}`)
    },
    async end(lines: number): Promise<void> {
      if (count === 0) return
      for (const text of first) await tell(text)
      if (count > first.length) await tell(`and ${count - first.length} more.`)
      throw new AppError('file_unusable', {
        message: `Of ${lines} lines ${count} are refused: nothing was imported.`,
      })
    },
  }
}
