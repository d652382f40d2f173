import type { Command } from 'commander'
import type { Io } from './io.ts'
import { table } from './table.ts'
import { addDatabaseOptions, type DatabaseOptions, withStore } from './with-store.ts'

/** `user list`: users with what belongs to them. */
export const userListCommand = (user: Command, io: Io): void => {
  addDatabaseOptions(user.command('list'))
    .description('list the users with their number of plants and tokens')
    .action(async (options: DatabaseOptions) => {
      const users = await withStore(options, (store) => store.listUsers())
      const rows = users.map(({ name, plants, tokens, createdAtMs }) => [
        name,
        String(plants),
        String(tokens),
        new Date(createdAtMs).toISOString(),
      ])
      await io.print(table(['user', 'plants', 'tokens', 'created'], rows))
    })
}
