import { setImmediate as nextTurn } from 'node:timers/promises'
import type { Command } from '@commander-js/extra-typings'
import type { ConflictRule } from '../../domain/plant.ts'
import { AppError } from '../../error.ts'
import type { ExistingLine, PlantImport } from '../../store/database.ts'
import { databaseOf } from '../../store/open.ts'
import { defineCommand, reportDatabase, tellRaise, warnOn } from '../command.ts'
import { type Input, openInput } from '../input.ts'
import type { Io } from '../io.ts'
import { progressLines, runUntilSignal } from '../long-task.ts'
import { counted, toJson } from '../output.ts'
import { readPlants } from '../plant-lines.ts'

export const REFUSALS_SHOWN_MAX = 20

/** An import, and how far it has come. */
interface ImportJob {
  readonly input: Input
  /** The user of lines without a user. */
  readonly user: string | undefined
  readonly rule: ConflictRule
  readonly isAtomic: boolean
  readonly maxLine: number
  /** How many lines were read that are not blank. */
  lines: number
  counts: { readonly durable: number; readonly created: number; readonly users: number }
}

/** `import`: checks all lines, then stores their plants. If it refuses a line, it prints the reason and stores nothing. */
export const importCommand = (program: Command, io: Io) =>
  defineCommand(program, 'import', {
    does: 'Stores plants from lines of JSON or CSV in the form of export. Reads stdin without a file.',
    examples: ['import plants.jsonl', 'import - --user me --on-conflict skip'],
    exits: { failed: 'A line is refused, or the file cannot be read.' },
    options: ['userOfLines', 'onConflict', 'maxLine', 'atomic', 'json', 'databaseFile'],
  })
    .argument('[file]', 'The lines, or - for stdin.')
    .action(async (file, { database, user, onConflict: rule, maxLine, atomic: isAtomic = false, json }, command) => {
      await reportDatabase(command, io)
      const input = await openInput(file, io)
      const tools = await databaseOf(database).fileTools()
      const counts = { durable: 0, created: 0, users: 0 }
      const job: ImportJob = { input, user, rule, isAtomic, maxLine, lines: 0, counts }
      const importAll = (signal: AbortSignal) =>
        tools.importPlants(rule, { ...io, onRaised: tellRaise({ warn: warnOn(io) }) }, async (target) => {
          await requireNone(checkLines(job, target, signal, io), job, io)
          if (rule === 'fail') await requireNone(Iterator.from(target.findExisting()).map(refuseExisting), job, io)
          await storeLines(job, target, signal, io)
        })
      await runUntilSignal(io, importAll, () => describeStored(job))
      const { created, users } = job.counts
      // The other lines have the user and the id of a stored plant or of another line.
      const others = job.lines - created
      const [skipped, replaced] = rule === 'replace' ? [0, others] : [others, 0]
      await io.report(
        `Imported ${counted(job.lines, 'line')} into ${database}: created ${counted(created, 'plant')}, skipped ${skipped}, replaced ${replaced}.`,
      )
      if (users > 0)
        await io.report(`Created ${counted(users, 'user')} without a token: plantstore token create makes one.`)
      if (json) await io.print(toJson({ lines: job.lines, created, skipped, replaced, createdUsers: users }))
    })

/** How far an import came, and how to go on. With `fail` the lines that are stored would be refused. */
function describeStored({ counts: { durable }, lines, rule }: ImportJob): string {
  if (durable === 0) return 'nothing was imported. Run the same command again.'
  const option = rule === 'fail' ? ' with --on-conflict skip' : ''
  return `${durable} of ${counted(lines, 'line')} are in. Run the same command again${option} to import the rest.`
}

/** Reads all lines into the staging table. Yields the line and the reason for each line that it refuses. */
async function* checkLines(job: ImportJob, target: PlantImport, signal: AbortSignal, io: Io): AsyncGenerator<string> {
  const { stream, bytes: total } = job.input
  const show = progressLines(io)
  const onBatch = (bytes: number) => {
    signal.throwIfAborted()
    show(bytes, total, `${counted(job.lines, 'plant')} checked`)
  }
  for await (const { number, plant } of readPlants(stream, job, onBatch)) {
    job.lines++
    if (typeof plant === 'string') {
      yield `line ${number}: ${plant}`
      continue
    }
    const first = target.add(plant, number)
    if (first !== undefined && job.rule === 'fail') yield `line ${number}: its user and id are those of line ${first}.`
  }
}

/** Says that a line has the user and the id of a stored plant. */
const refuseExisting = ({ line, user, id }: ExistingLine): string =>
  `line ${line}: the user ${user} has plant ${id} already.`

/** Throws if lines are refused. Before that it prints the first of the refusals. */
async function requireNone(refusals: AsyncIterable<string> | Iterable<string>, job: ImportJob, { report }: Io) {
  const first: string[] = []
  let count = 0
  for await (const text of refusals) {
    count++
    if (first.length < REFUSALS_SHOWN_MAX) first.push(text)
  }
  if (count === 0) return
  for (const text of first) await report(text)
  if (count > first.length) await report(`and ${count - first.length} more.`)
  const message = `Of ${job.lines} lines ${count} are refused: nothing was imported.`
  throw new AppError('file_unusable', { message })
}

async function storeLines(job: ImportJob, target: PlantImport, signal: AbortSignal, io: Io): Promise<void> {
  const { isAtomic, lines } = job
  if (isAtomic) await io.report('Creates and deletes of servers wait until all is in, or are refused.')
  const show = progressLines(io)
  for await (const counts of target.store(isAtomic)) {
    job.counts = counts
    show(counts.written, lines, `${counts.written} of ${lines} plants imported`)
    // Signals need a turn of the event loop.
    await nextTurn()
    signal.throwIfAborted()
  }
}
