import { expect, test } from 'bun:test'
import { runPlantstore } from '../support/executable.ts'

const DATABASE = 'postgres://me@localhost/plants'

test.each(['backup plants.db', 'backup --dir .', 'backup -', 'restore plants.db', 'export', 'import', 'status'])(
  '%s refuses a PostgreSQL database in one line that names pg_dump',
  async (command) => {
    const answer = await runPlantstore([...command.split(' '), '--database', DATABASE])

    expect(answer).toEqual({
      stdout: '',
      stderr: 'plantstore: This works on a database file only: use pg_dump and pg_restore for a PostgreSQL database.\n',
      exitCode: 2,
    })
  },
)
