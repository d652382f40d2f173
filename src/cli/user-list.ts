import type { Command } from 'commander'
import { OPTIONS } from '../config.ts'
import type { Io } from './io.ts'
import { table } from './table.ts'
import { withStore } from './with-store.ts'

/** `user list`: users with what belongs to them. */
export const userListCommand = (user: Command, io: Io): void => {
  user
    .command('list')
    .description('list the users with their number of plants and tokens')
    .addOption(OPTIONS.json())
    .addOption(OPTIONS.database())
    .action(async ({ database, json }: { readonly database: string; readonly json?: boolean }) => {
      const users = (await withStore(database, (store) => store.listUsers())).map(
        ({ name, plants, tokens, createdAtMs }) => ({
          user: name,
          plants,
          tokens,
          created: new Date(createdAtMs).toISOString(),
        }),
      )
      const rows = users.map(({ user, plants, tokens, created }) => [user, String(plants), String(tokens), created])
      await io.print(
        json ? `${JSON.stringify(users, null, 2)}\n` : table(['user', 'plants', 'tokens', 'created'], rows),
      )
    })
}
