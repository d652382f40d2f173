import type { Command } from '@commander-js/extra-typings'
import { OPTIONS } from '../../config.ts'
import type { Durability } from '../../domain/store.ts'
import type { FileTools } from '../../store/engine.ts'
import { engineOf } from '../../store/open.ts'
import { VERSION } from '../../version.ts'
import { manual } from '../command.ts'
import type { Io } from '../io.ts'
import { table, toJson } from '../output.ts'

/** `status`: prints what a database is and holds, whether a server uses it or not. */
export const statusCommand = (program: Command, io: Io): void => {
  program
    .command('status')
    .description('Prints the state of the database and how much it holds, also while a server runs.')
    .addHelpText('after', manual('status', 'status --database /var/lib/plantstore/plants.db --json'))
    .addOption(OPTIONS.json)
    .addOption(OPTIONS.durability)
    .addOption(OPTIONS.database)
    .action(async ({ database, durability, json }) => {
      const tools = await engineOf(database).fileTools()
      const status = { version: VERSION, ...(await tools.status(io.nowMs())), durability }
      await io.print(json ? toJson(status) : table(rowsOf(status)))
    })
}

type StoreStatus = Awaited<ReturnType<FileTools['status']>>

const rowsOf = (status: StoreStatus & { readonly version: string; readonly durability: Durability }) => [
  ['version', `${status.version}, ${status.engine}`],
  ['database', `${status.path}, ${status.isInUse ? 'open in another process' : 'at rest'}`],
  ['schema', `${status.schema}, ${schemaText(status)}`],
  ['size', `${status.bytes} bytes, ${status.freeBytes} of them free`],
  ['WAL', `${status.walBytes} bytes`],
  ['users', status.users],
  ['tokens', `${status.tokens}, ${status.activeTokens} of them active`],
  ['plants', status.plants],
  ['durability', DURABILITY_TEXTS[status.durability]],
]

const schemaText = ({ schema, schemaKnown }: StoreStatus): string =>
  schema === schemaKnown ? 'up to date' : `the next server will migrate it to ${schemaKnown}`

/** When a write succeeds on a server with the options of this command. The database does not record it. */
const DURABILITY_TEXTS: Readonly<Record<Durability, string>> = {
  full: 'full: with these settings a success is on disk',
  normal: 'normal: with these settings a loss of power may take the latest writes',
  storage: 'storage: this is for PostgreSQL alone, a server refuses it for a file',
}
