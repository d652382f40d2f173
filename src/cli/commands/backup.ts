// Tested in test/cli/transcripts/backup-restore.txt.
import type { Command } from '@commander-js/extra-typings'
import { misused } from '../../error.ts'
import type { Cloned, FileTools } from '../../store/database.ts'
import { databaseOf } from '../../store/open.ts'
import { defineCommand, reportDatabase } from '../command.ts'
import { exitCodeOf, type Io } from '../io.ts'
import { runClone } from '../long-task.ts'
import { printLine, toJson } from '../output.ts'

/** `backup`: makes a backup and prints its path once the backup is whole and on disk. */
export const backupCommand = (program: Command, io: Io) =>
  defineCommand(program, 'backup', {
    does: 'Backs up the database, also while a server runs.',
    examples: ['backup plants.db', 'backup --dir /var/backups/plantstore --keep 14'],
    exits: { failed: 'The file exists already, or cannot be written.' },
    options: ['dir', 'keep', 'force', 'json', 'databaseFile'],
  })
    .argument('[file]', 'The backup, or - for stdout.')
    .action(async (file, { database, dir, keep, force = false, json = false }) => {
      const isStdout = file === '-'
      if (keep !== undefined && dir === undefined) throw misused('--keep counts the backups in --dir.')
      if (force && (isStdout || dir !== undefined))
        throw misused('--force is for a file: nothing is replaced in --dir or on stdout.')
      if (json && isStdout) throw misused('--json and the backup cannot both go to stdout: leave --json out.')
      const tools = await databaseOf(database).fileTools()
      const startedMs = io.nowMs()
      const target = file || (dir && tools.backupIn(dir, startedMs))
      if (!target || (file && dir)) throw misused('Say where to: either a file or --dir.')
      if (isStdout) return printBackup(tools, startedMs, io)
      const cloned = await runClone(io, (clone) => tools.backup(target, { ...clone, force }))
      try {
        await reportClone('Backed up', cloned, io, json)
      } finally {
        // The backup counts also if its path cannot be printed.
        await record(tools, startedMs, cloned.bytes, io)
        if (keep !== undefined) await deleteOld(tools, cloned.path, keep, io)
      }
    })

async function printBackup(tools: FileTools, startedMs: number, io: Io): Promise<void> {
  if (io.printsToTerminal) throw misused('A backup is not text: send stdout to a file or another program.')
  const backup = await runClone(io, tools.backupToRead)
  // The backup has no name, so a signal can end the process at once.
  io.onSignal((signal) => io.exit(exitCodeOf(signal)))
  for await (const chunk of backup.chunks) await io.print(chunk)
  await reportCounts('Backed up', backup, io)
  await record(tools, startedMs, backup.bytes, io)
}

const record = (tools: FileTools, startedMs: number, bytes: number, { report }: Pick<Io, 'report'>) =>
  tools.recordBackup(startedMs, bytes).catch((error: unknown) =>
    // The backup is complete, so the exit code is 0.
    report(`Warning: the backup is complete, but the database could not record it for the metrics: ${error}.`),
  )

async function deleteOld(tools: FileTools, latest: string, keep: number, { report }: Pick<Io, 'report'>) {
  const { deleted, future } = await tools.keepBackups(latest, keep)
  for (const name of future) await report(`Warning: ${name} is dated in the future: it is neither counted nor deleted.`)
  for (const name of deleted) await report(`Deleted ${name}.`)
}

/** `restore`: replaces the database by a backup and prints its path. No process may have the database open. */
export const restoreCommand = (program: Command, io: Io) =>
  defineCommand(program, 'restore', {
    does: 'Replaces the database by a backup. No process may have the database open.',
    examples: ['restore plants.db --database plantstore.db', 'restore plants.db --force --database plantstore.db'],
    exits: {
      failed: 'The database exists and --force is missing.',
      storeUnusable: 'The backup is missing or damaged, or the database is in use.',
    },
    options: ['force', 'json', 'restored'],
  })
    .argument('<file>', 'The backup.')
    .action(async (file, { database, force = false, json }, command) => {
      if (file === '-') throw misused('restore does not read stdin: save the backup as a file and name it.')
      if (!database) throw misused('Name the database that the server uses: --database or PLANTSTORE_DATABASE.')
      if (force) await reportDatabase(command, io)
      const tools = await databaseOf(database).fileTools()
      const cloned = await runClone(io, (clone) => tools.restore(file, { ...clone, force }))
      await reportClone('Restored', cloned, io, json)
    })

/** Prints how much was cloned on stderr, and the path of the clone on stdout. */
async function reportClone(what: string, cloned: Cloned, io: Io, json = false): Promise<void> {
  const { path, bytes, users, tokens, plants } = cloned
  await reportCounts(what, cloned, io)
  await (json ? io.print(toJson({ path, bytes, users, tokens, plants })) : printLine(io, path))
}

async function reportCounts(what: string, cloned: Omit<Cloned, 'path'>, io: Io): Promise<void> {
  const { bytes, users, tokens, plants, dropped } = cloned
  if (dropped !== '') await io.report(`Left out the objects of other programs: ${dropped}.`)
  await io.report(`${what} ${bytes} bytes: users ${users}, tokens ${tokens}, plants ${plants}.`)
}
