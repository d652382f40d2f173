import type { Command } from 'commander'
import { OPTIONS } from '../config.ts'
import { AppError } from '../domain/error.ts'
import { parseUserName, Rule } from '../values.ts'
import type { Io } from './io.ts'
import { addDatabaseOptions, type DatabaseOptions, withStore } from './with-store.ts'

/** `user delete`: the user with all tokens and plants. There is no way back, hence `--yes`. */
export const userDeleteCommand = (user: Command, io: Io): void => {
  addDatabaseOptions(user.command('delete'))
    .description('delete a user with all tokens and plants')
    .argument('<name>', 'name of the user')
    .addOption(OPTIONS.yes())
    .action(async (name: string, { yes, ...options }: DatabaseOptions & { readonly yes?: boolean }) => {
      const rule = parseUserName(name)
      if (rule instanceof Rule) throw new AppError('misused', { message: `The name of a user must be ${rule.text}.` })
      if (!yes)
        throw new AppError('misused', { message: `This deletes all plants of ${name} for good: repeat it with --yes.` })
      const { plants, tokens } = await withStore(options, (store) => store.deleteUser(name)).catch((error) => {
        throw stoppedHalfWay(error, name)
      })
      await io.tell(`Deleted the user ${name} with ${plants} plants and ${tokens} tokens.\n`)
    })
}

/** A lock or a full disk can come between two batches: then the user is gone in part. */
function stoppedHalfWay(error: unknown, name: string): unknown {
  if (!(error instanceof AppError) || (error.kind !== 'store_busy' && error.kind !== 'store_full')) return error
  const reason = error.kind === 'store_busy' ? 'another process has locked the database' : 'there is no space left'
  return new AppError(error.kind, {
    message: `Stopped, because ${reason}. Tokens and some plants of ${name} may be deleted already: repeat the command.`,
    cause: error,
  })
}
