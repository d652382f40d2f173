import type { Command } from 'commander'
import { OPTIONS } from '../config.ts'
import { AppError } from '../domain/error.ts'
import { USER_NAME, USER_NAME_RULE } from '../domain/user.ts'
import type { Io } from './io.ts'
import { withStore } from './with-store.ts'

/** `user delete`: the user with all tokens and plants. There is no way back, hence `--yes`. */
export const userDeleteCommand = (user: Command, io: Io): void => {
  user
    .command('delete')
    .description('delete a user with all tokens and plants')
    .argument('<name>', 'name of the user')
    .addOption(OPTIONS.yes())
    .addOption(OPTIONS.database())
    .action(async (name: string, { database, yes }: { readonly database: string; readonly yes?: boolean }) => {
      if (!USER_NAME.test(name)) throw new AppError('misused', { message: `The name of a user is ${USER_NAME_RULE}.` })
      if (!yes)
        throw new AppError('misused', { message: `This deletes all plants of ${name} for good: repeat it with --yes.` })
      const { plants, tokens } = await withStore(database, (store) => store.deleteUser(name))
      await io.tell(`Deleted the user ${name} with ${plants} plants and ${tokens} tokens.\n`)
    })
}
