import { createReadStream } from 'node:fs'
import { access, constants, stat } from 'node:fs/promises'
import type { Command } from '@commander-js/extra-typings'
import { OPTIONS } from '../../config.ts'
import { AppError, readFailure } from '../../domain/error.ts'
import { engineOf } from '../../store/open.ts'
import { manual } from '../command.ts'
import type { Io } from '../io.ts'
import { runUntilSignal } from '../long-task.ts'
import { counted, toJson } from '../output.ts'
import { type ImportJob, importLines } from './import-lines.ts'

/** `import`: checks all lines, then stores their plants. If it refuses a line, it prints the reason and stores nothing. */
export const importCommand = (program: Command, io: Io): void => {
  program
    .command('import')
    .description('Stores plants from lines of JSON in the form of export. Reads stdin without a file.')
    .addHelpText(
      'after',
      manual('import plants.jsonl', 'import - --user me --on-conflict skip', {
        failed: 'A line is refused, or the file cannot be read.',
      }),
    )
    .argument('[file]', 'The lines, or - for stdin.')
    .addOption(OPTIONS.user)
    .addOption(OPTIONS.onConflict)
    .addOption(OPTIONS.atomic)
    .addOption(OPTIONS.json)
    .addOption(OPTIONS.database)
    .action(async (file, { database, user, onConflict: rule, atomic: isAtomic = false, json }) => {
      const input = await openInput(file, io)
      const tools = await engineOf(database).fileTools()
      using target = await tools.openImport(rule, io.nowMs)
      const job: ImportJob = { input, user, rule, isAtomic, target, lines: 0, repeated: 0, stored: 0 }
      const importAll = (signal: AbortSignal) => importLines(job, signal, io)
      const counts = await runUntilSignal(io, importAll, () => describeStored(job))
      const { created, skipped, replaced, users } = counts
      await io.tell(
        `Imported ${counted(job.lines, 'line')} into ${database}: created ${counted(created, 'plant')}, skipped ${skipped}, replaced ${replaced}.\n`,
      )
      if (users > 0)
        await io.tell(`Created ${counted(users, 'user')} without a token: plantstore token create makes one.\n`)
      if (json) await io.print(toJson({ lines: job.lines, created, skipped, replaced, createdUsers: users }))
    })
}

/** How far an import came, and how to go on. With `fail` the lines that are stored would be refused. */
function describeStored({ stored, lines, rule }: ImportJob): string {
  if (stored === 0) return 'nothing was imported. Run the same command again.'
  const option = rule === 'fail' ? ' with --on-conflict skip' : ''
  return `${stored} of ${counted(lines, 'line')} are in. Run the same command again${option} to import the rest.`
}

async function openInput(file: string | undefined, io: Pick<Io, 'stdin'>): Promise<ImportJob['input']> {
  if (file === undefined || file === '-') return { stream: io.stdin(), bytes: undefined }
  const refuse = (cause: unknown) => {
    const message = `Cannot read ${file}: ${readFailure(cause)}. Name another file, or - for stdin.`
    throw new AppError('file_unusable', { message, cause })
  }
  const found = await stat(file).catch(refuse)
  if (found.isDirectory()) refuse('EISDIR')
  await access(file, constants.R_OK).catch(refuse)
  // What `Bun.file` makes of a device waits by epoll, which refuses /dev/null.
  const isDevice = found.isCharacterDevice() || found.isBlockDevice()
  const stream = isDevice ? createReadStream(file) : Bun.file(file).stream()
  return { stream, bytes: found.isFile() ? found.size : undefined }
}
