import type { Command } from '@commander-js/extra-typings'
import { OPTIONS, parseValue } from '../../config.ts'
import { AppError } from '../../domain/error.ts'
import { OTHERS_SEEN_WITHIN_MS } from '../../domain/store.ts'
import { userName } from '../../values.ts'
import type { CommandIo } from '../io.ts'
import { manual, STORE_UNUSABLE } from '../manual.ts'
import { showProgress } from '../progress.ts'
import { runUntilSignal } from '../stopping.ts'
import { toJson } from '../table.ts'
import { addDatabaseOptions, withStore } from '../with-store.ts'
import { counted } from '../wording.ts'

/** `user delete`: deletes a user with all tokens and plants. This cannot be undone, so it needs `--yes`. */
export const userDeleteCommand = (user: Command, io: CommandIo): void => {
  addDatabaseOptions(user.command('delete'))
    .description('Deletes a user with all tokens and plants.')
    .addHelpText(
      'after',
      manual(['user delete me --yes', 'user delete me --yes --json'], {
        failed: 'The user is unknown.',
        storeUnusable: STORE_UNUSABLE,
      }),
    )
    .argument('<name>', 'The name of the user.', (text) => parseValue(text, userName, 'The name of a user'))
    .addOption(OPTIONS.yes)
    .addOption(OPTIONS.json)
    .action(async (name, { yes, json, ...options }) => {
      if (!yes)
        throw new AppError('misused', { message: `This deletes all plants of ${name} for good: repeat it with --yes.` })
      let reached: Reached | undefined
      const deleteUser = async (signal: AbortSignal) => {
        using progress = showProgress(io, `plants of ${name} deleted`)
        const onProgress = (deleted: number, total: number) => {
          reached = { deleted, total }
          progress.update(deleted, total)
        }
        return await withStore(options, (store) => store.deleteUser(name, { signal, onProgress }))
      }
      const stoppedText = () => describeReached(name, reached)
      const deleted = await runUntilSignal(io, deleteUser, stoppedText).catch((error) => {
        throw stoppedHalfWay(error, stoppedText())
      })
      if (deleted === undefined) return
      // Once this command has ended, every server on the same file refuses the tokens.
      await Bun.sleep(OTHERS_SEEN_WITHIN_MS)
      const { plants, tokens } = deleted
      await io.tell(`Deleted user ${name} with ${counted(tokens, 'token')} and ${counted(plants, 'plant')}.\n`)
      if (json) await io.print(toJson({ user: name, tokens, plants }))
    })
}

/** The progress of the deletion. */
interface Reached {
  readonly deleted: number
  readonly total: number
}

function describeReached(name: string, reached: Reached | undefined): string {
  if (reached === undefined) return 'nothing was deleted. Run the same command again to delete the user.'
  const { deleted, total } = reached
  return `all tokens of user ${name} and ${deleted} of ${counted(total, 'plant')} are deleted. Run the same command again to delete the rest.`
}

/** A lock or a full disk can stop the deletion between two batches. Then a part of the user is deleted. */
function stoppedHalfWay(error: unknown, stoppedText: string): unknown {
  if (!(error instanceof AppError) || (error.kind !== 'store_busy' && error.kind !== 'store_full')) return error
  const reason =
    error.kind === 'store_busy' ? 'the database is locked by another process or busy' : 'there is no space left'
  return new AppError(error.kind, { message: `Stopped, because ${reason}: ${stoppedText}`, cause: error })
}
