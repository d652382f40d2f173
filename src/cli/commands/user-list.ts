import type { Command } from 'commander'
import { OPTIONS } from '../../config.ts'
import type { Io } from '../io.ts'
import { json, table } from '../table.ts'
import { addDatabaseOptions, type DatabaseOptions, withStore } from '../with-store.ts'

/** `user list`: users with what belongs to them. */
export const userListCommand = (user: Command, io: Io): void => {
  addDatabaseOptions(user.command('list'))
    .description('list the users with their number of plants and tokens')
    .addOption(OPTIONS.json())
    .action(async ({ json: asJson, ...options }: DatabaseOptions & { readonly json?: boolean }) => {
      const users = (await withStore(options, (store) => store.listUsers())).map(
        ({ name, plants, tokens, createdAtMs }) => ({
          user: name,
          plants,
          tokens,
          created: new Date(createdAtMs).toISOString(),
        }),
      )
      if (asJson) return io.print(json(users))
      const rows = users.map(({ user: name, plants, tokens, created }) => [
        name,
        String(plants),
        String(tokens),
        created,
      ])
      await io.print(table(['user', 'plants', 'tokens', 'created'], rows))
    })
}
