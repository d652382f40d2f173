import type { Command } from 'commander'
import { OPTIONS } from '../../config.ts'
import { escapeControls } from '../../controls.ts'
import { AppError } from '../../domain/error.ts'
import { restoreStore } from '../../store/open.ts'
import { runCopy } from '../copying.ts'
import type { Io } from '../io.ts'
import { tellCopied } from './backup.ts'

interface RestoreOptions {
  readonly database: string
  readonly force?: boolean
  readonly json?: boolean
}

/** `restore`: makes a backup the database, which nobody may have open. Prints its path. */
export const restoreCommand = (program: Command, io: Io, exit: (code: number) => void): void => {
  program
    .command('restore')
    .description('make a backup the database, which no process may have open')
    .argument('<file>', 'the backup')
    .addOption(OPTIONS.force())
    .addOption(OPTIONS.json())
    .addOption(OPTIONS.database())
    .action(async (file: string, { database, force = false, json }: RestoreOptions) => {
      if (file === '-') {
        throw new AppError('misused', {
          message: 'restore does not read stdin: save the backup as a file and name it.',
        })
      }
      const copied = await runCopy(io, exit, (options) => restoreStore(file, database, { ...options, force }))
      if (copied === undefined) return
      if (copied.dropped !== '') {
        await io.tell(`Dropped the objects of other programs: ${escapeControls(copied.dropped)}.\n`)
      }
      await tellCopied('Restored', copied, io, json)
    })
}
