import { describe, expect, test } from 'bun:test'
import { MIGRATIONS, SCHEMA_VERSION } from '../../src/store/sqlite/format.ts'
import { queryAll, runSql } from '../store/sqlite/files.ts'
import { makeDatabase } from './support/database.ts'

const OLDER = SCHEMA_VERSION - 1
const OURS = 0x706c7374

/** A database that an older version of this program has made. `run` runs a command in its folder. */
function makeOlderDatabase() {
  const made = makeDatabase()
  const marks = [`pragma application_id = ${OURS}`, `pragma user_version = ${OLDER}`, 'pragma journal_mode = wal']
  runSql(made.database, ...MIGRATIONS.slice(0, OLDER), ...marks)
  const schemaOf = () => Number(queryAll(made.database, 'pragma user_version')[0]?.[0])
  return { ...made, schemaOf }
}

describe('a database with an older schema', () => {
  test.each(['check', 'user list', 'token list', 'token create --user me', 'export', 'import /dev/null'])(
    'is migrated by %s',
    async (command) => {
      using made = makeOlderDatabase()
      const { exitCode } = await made.run(...command.split(' '))

      expect([exitCode, made.schemaOf()]).toEqual([0, SCHEMA_VERSION])
    },
  )

  test('is left as it is by status and backup, and its backup is restored with the same schema', async () => {
    using made = makeOlderDatabase()
    const answers = [
      await made.run('status'),
      await made.run('backup', 'older.db'),
      await made.run('restore', 'older.db', '--force', '--database', made.database),
    ]

    expect(answers.map(({ exitCode }) => exitCode)).toEqual([0, 0, 0])
    // It has no table for the record of a backup.
    expect(answers[1]?.stderr).not.toContain('Warning')
    expect(made.schemaOf()).toBe(OLDER)
  })
})
