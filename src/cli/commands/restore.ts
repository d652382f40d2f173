import type { Command } from '@commander-js/extra-typings'
import { OPTIONS } from '../../config.ts'
import { escapeControls } from '../../controls.ts'
import { AppError } from '../../domain/error.ts'
import { engineOf } from '../../store/open.ts'
import { manual } from '../command.ts'
import type { Io } from '../io.ts'
import { runCopy } from '../long-task.ts'
import { tellCopied } from './backup.ts'

/** `restore`: replaces the database by a backup and prints its path. No process may have the database open. */
export const restoreCommand = (program: Command, io: Io): void => {
  program
    .command('restore')
    .description('Replaces the database by a backup. No process may have the database open.')
    .addHelpText(
      'after',
      manual('restore plants.db', 'restore plants.db --force', {
        failed: 'The backup cannot be read.',
        storeUnusable: 'The backup is damaged, or the database is in use, or exists and --force is missing.',
      }),
    )
    .argument('<file>', 'The backup.')
    .addOption(OPTIONS.force)
    .addOption(OPTIONS.json)
    .addOption(OPTIONS.database)
    .action(async (file, { database, force = false, json }) => {
      if (file === '-') {
        throw new AppError('misused', {
          message: 'restore does not read stdin: save the backup as a file and name it.',
        })
      }
      const tools = await engineOf(database).fileTools()
      const copied = await runCopy(io, (options) => tools.restore(file, { ...options, force }))
      if (copied.dropped !== '') {
        await io.tell(`Dropped the objects of other programs: ${escapeControls(copied.dropped)}.\n`)
      }
      await tellCopied('Restored', copied, io, json)
    })
}
