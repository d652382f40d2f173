import { expect, test } from 'bun:test'
import { runPlantstore } from '../support/executable.ts'

const DATABASE = 'postgres://me@localhost/plants'

test.each(['backup plants.db', 'backup --dir .', 'backup -', 'restore plants.db', 'export', 'import', 'status'])(
  '%s refuses a PostgreSQL database in one line that names pg_dump',
  async (command) => {
    const answer = await runPlantstore([...command.split(' '), '--database', DATABASE])

    expect(answer).toEqual({
      stdout: '',
      stderr:
        'plantstore: This is for a database in a file: one of PostgreSQL is kept by its own tools, pg_dump and pg_restore.\n',
      exitCode: 2,
    })
  },
)
