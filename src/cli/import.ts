import { createReadStream } from 'node:fs'
import { access, constants, stat } from 'node:fs/promises'
import type { Command } from 'commander'
import { OPTIONS } from '../config.ts'
import { AppError } from '../domain/error.ts'
import { readFailure } from '../domain/read-failure.ts'
import type { ConflictRule, Transfer } from '../domain/transfer.ts'
import { openSpoolFor, openTransfer } from '../store/open.ts'
import { checkLines, type Input, requireFree } from './import-check.ts'
import { importLines } from './import-write.ts'
import { exitCodeOf, type Io } from './io.ts'
import { stopOnSignal } from './stopping.ts'

interface ImportOptions {
  readonly database: string
  readonly user?: string
  readonly onConflict: ConflictRule
  readonly atomic?: boolean
}

/** `import`: checks all lines, then stores them. What is refused is told by its line, and then nothing is stored. */
export const importCommand = (program: Command, io: Io, exit: (code: number) => void): void => {
  program
    .command('import')
    .description('store plants, a line of JSON each, as export prints them; from stdin without a file')
    .argument('[file]', 'the lines, or - for stdin')
    .addOption(OPTIONS.user())
    .addOption(OPTIONS.onConflict())
    .addOption(OPTIONS.atomic())
    .addOption(OPTIONS.database())
    .action(async (file: string | undefined, options: ImportOptions) => {
      const input = await openInput(file, io)
      const transfer = await openTransfer(options.database, io.nowMs)
      try {
        await importInto(transfer, input, options)
      } finally {
        await transfer.close()
      }
    })

  const importInto = async (transfer: Transfer, input: Input, options: ImportOptions) => {
    const { database, user, onConflict: rule, atomic: isAtomic = false } = options
    const stopping = stopOnSignal(io)
    const wishes = { user, rule, isAtomic, signal: stopping.signal }
    using spool = openSpoolFor(database, rule)
    await io.tell(`What is read is kept in ${spool.directory} until it is in, in a file without a name.\n`)
    let isChecked = false
    try {
      const read = await checkLines(input, spool, wishes, io)
      if (rule === 'fail') await requireFree(spool, transfer, read, wishes, io)
      isChecked = true
      await importLines(spool, transfer, read, wishes, io)
    } catch (error) {
      const signal = stopping.stoppedBy()
      if (signal === undefined || error !== stopping.signal.reason) throw error
      exit(exitCodeOf(signal))
      if (!isChecked) await io.tell('Stopped: nothing was imported.\n')
    }
  }
}

async function openInput(file: string | undefined, io: Pick<Io, 'stdin'>): Promise<Input> {
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
