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
    .addOption(OPTIONS.database())
    .action(async ({ database }: { readonly database: string }) => {
      const users = await withStore(database, (store) => store.listUsers())
      const rows = users.map(({ name, plants, tokens, createdAtMs }) => [
        name,
        String(plants),
        String(tokens),
        new Date(createdAtMs).toISOString(),
      ])
      await io.print(table(['user', 'plants', 'tokens', 'created'], rows))
    })
}
