import type { Command } from '@commander-js/extra-typings'
import { OPTIONS } from '../../config.ts'
import type { Io } from '../io.ts'
import { manual, STORE_UNUSABLE } from '../manual.ts'
import { table, toJson } from '../table.ts'
import { addDatabaseOptions, withStore } from '../with-store.ts'

/** `user list`: prints the users with their numbers of plants and tokens. */
export const userListCommand = (user: Command, io: Io): void => {
  addDatabaseOptions(user.command('list'))
    .description('Lists the users with their numbers of plants and tokens.')
    .addHelpText('after', manual(['user list', 'user list --json'], { storeUnusable: STORE_UNUSABLE }))
    .addOption(OPTIONS.json)
    .action(async ({ json, ...options }) => {
      const users = (await withStore(options, (store) => store.listUsers())).map(
        ({ name, plants, tokens, createdAtMs }) => ({
          user: name,
          plants,
          tokens,
          created: new Date(createdAtMs).toISOString(),
        }),
      )
      if (json) return io.print(toJson(users))
      const rows = users.map(({ user: name, plants, tokens, created }) => [
        name,
        String(plants),
        String(tokens),
        created,
      ])
      await io.print(table(['user', 'plants', 'tokens', 'created'], rows))
    })
}
