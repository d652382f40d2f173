import type { Command } from 'commander'
import { OPTIONS } from '../../config.ts'
import { AppError } from '../../domain/error.ts'
import { backupStore, backupStoreInto, backupStoreToRead, keepStoreBackups } from '../../store/open.ts'
import type { Copied } from '../../store/opening.ts'
import { runCopy } from '../copying.ts'
import { exitCodeOf, type Io } from '../io.ts'
import { json } from '../table.ts'

interface BackupOptions {
  readonly database: string
  readonly dir?: string
  readonly keep?: number
  readonly force?: boolean
  readonly json?: boolean
}

/** `backup`: prints the path of the backup, once it is whole and on disk. */
export const backupCommand = (program: Command, io: Io, exit: (code: number) => void): void => {
  program
    .command('backup')
    .description('back up the database, also while a server runs on it')
    .argument('[file]', 'the backup, or - for stdout')
    .addOption(OPTIONS.dir())
    .addOption(OPTIONS.keep())
    .addOption(OPTIONS.force())
    .addOption(OPTIONS.json())
    .addOption(OPTIONS.database())
    .action(async (file: string | undefined, options: BackupOptions) => {
      const { dir, keep, force, json: asJson } = options
      if (file === '' || (file !== undefined && dir !== undefined)) throw misused('Say which: a file, or --dir.')
      if (keep !== undefined && dir === undefined) throw misused('--keep counts the backups in --dir.')
      if (file === undefined && dir === undefined) throw misused('Say where to: a file, or --dir.')
      if (force && (file === undefined || file === '-'))
        throw misused('--force is for a file: nothing is replaced in --dir or on stdout.')
      if (asJson && file === '-') throw misused('--json and the backup cannot both go to stdout: leave --json out.')
      if (file === '-') return printBackup(options)
      const copied = await runCopy(io, exit, (each) =>
        file === undefined ? backupInto(dir ?? '', options, each) : backupAs(file, options, each),
      )
      if (copied === undefined) return
      await tellCopied('Backed up', copied, io, options.json)
      if (options.keep !== undefined && file === undefined) await deleteOld(copied.path, options.keep, options)
    })

  const printBackup = async ({ database }: BackupOptions) => {
    if (io.printsToTerminal) throw misused('A backup is no text: send stdout to a file or another program.')
    const backup = await runCopy(io, exit, (options) => backupStoreToRead(database, options))
    if (backup === undefined) return
    // The backup has no name, so a signal can end the process at once.
    io.onSignal((signal) => io.exit(exitCodeOf(signal)))
    for (const chunk of backup.chunks) await io.print(chunk)
    await tellCounts('Backed up', backup, io)
  }

  const backupAs = (file: string, { database, force = false }: BackupOptions, options: object) =>
    backupStore(database, file, { ...options, force })

  const backupInto = (dir: string, { database }: BackupOptions, options: object) =>
    backupStoreInto(database, dir, { ...options, nowMs: io.nowMs() })

  const deleteOld = async (latest: string, keep: number, { database }: BackupOptions) => {
    const { deleted, notices } = keepStoreBackups(database, latest, keep)
    for (const notice of notices) await io.tell(`Warning: ${notice}\n`)
    for (const name of deleted) await io.tell(`Deleted ${name}.\n`)
  }
}

/** What was copied, for the person, and where it is, for programs. */
export async function tellCopied(what: string, copied: Copied, io: Io, asJson = false): Promise<void> {
  const { path, bytes, users, tokens, plants } = copied
  await tellCounts(what, copied, io)
  await io.print(asJson ? json({ path, bytes, users, tokens, plants }) : `${path}\n`)
}

const tellCounts = (what: string, { bytes, users, tokens, plants }: Omit<Copied, 'path'>, io: Io): Promise<void> =>
  io.tell(`${what} ${bytes} bytes: users ${users}, tokens ${tokens}, plants ${plants}.\n`)

const misused = (message: string) => new AppError('misused', { message })
