// Tested in test/cli/transcripts/status-check.txt.
import type { Command } from '@commander-js/extra-typings'
import { databaseOf } from '../../store/open.ts'
import { VERSION } from '../../version.ts'
import { defineCommand, warnOn } from '../command.ts'
import type { Io } from '../io.ts'
import { table, toJson } from '../output.ts'

/** `status`: prints what a database is and holds, whether a server uses it or not. */
export const statusCommand = (program: Command, io: Io) =>
  defineCommand(program, 'status', {
    does: 'Prints the state of the database and how much it holds, also while a server runs.',
    examples: ['status', 'status --database /var/lib/plantstore/plants.db --json'],
    options: ['json', 'databaseFile'],
  }).action(async ({ database, json }) => {
    const tools = await databaseOf(database).fileTools()
    const status = { version: VERSION, ...(await tools.status(warnOn(io))) }
    if (json) return io.print(toJson(status))
    const { schema, schemaKnown } = status
    const migration = schema === schemaKnown ? 'up to date' : `the next server will migrate it to ${schemaKnown}`
    const rows = [
      ['version', `${VERSION}, ${status.engine}`],
      ['database', `${status.path}, ${status.isInUse ? 'open in another process' : 'at rest'}`],
      ['schema', `${schema}, ${migration}`],
      ['size', `${status.bytes} bytes`],
      ['WAL', `${status.walBytes} bytes`],
      ['users', status.users],
      ['tokens', status.tokens],
      ['plants', status.plants],
    ]
    await io.print(table(rows))
  })
