import { describe, expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { RESTORE } from '../../src/store/errors.ts'
import { overwrite, runSql } from '../store/sqlite/files.ts'
import { runPlantstore, serve } from '../support/executable.ts'
import { done } from './support/answers.ts'
import { fillDatabase } from './support/database.ts'

const check = (database: string) => runPlantstore(['check', '--database', database])

describe.concurrent('check', () => {
  test('finds a database whole, with and without --json, also while a server uses it', async () => {
    using made = await fillDatabase(1000)
    const path = made.database
    const text = done(`The database ${path} is whole.`)
    const json = await runPlantstore(['check', '--json', '--database', path])

    expect(await check(path)).toEqual(text)
    expect(json).toEqual({ ...text, stdout: json.stdout })
    expect(JSON.parse(json.stdout)).toEqual({ database: path, isWhole: true, problems: [] })
    await using _server = await serve(path)
    expect(await check(path)).toEqual(text)
  })

  test('prints each problem in a line, with control characters as JSON escapes, and exits with 3', async () => {
    using made = await fillDatabase(1000)
    const path = made.database
    const name = 'x\u001b[2K\u202e'
    const condition = 'where a > 1'
    runSql(
      path,
      'pragma foreign_keys = off',
      "insert into plants (user_id, id, name) values (99, 1, 'Fern')",
      `create table notes (a); create index "${name}" on notes (a) ${condition}; insert into notes values (1)`,
    )
    // Without its condition the index lacks that row.
    overwrite(path, readFileSync(path).indexOf(condition), Buffer.alloc(condition.length, ' '))
    const { stderr, exitCode } = await check(path)
    const inJson = await runPlantstore(['check', '--json', '--database', path])

    expect(exitCode).toBe(3)
    expect(inJson).toEqual({ stdout: inJson.stdout, stderr, exitCode: 3 })
    expect(JSON.parse(inJson.stdout)).toEqual({
      database: path,
      isWhole: false,
      problems: expect.arrayContaining([expect.stringContaining('plants belongs to no user')]),
    })
    expect(stderr).toContain(String.raw`  row 1 missing from index x\u001b[2K\u202e${'\n'}`)
    expect(stderr.replaceAll('\n', '')).not.toMatch(/[\p{Cc}\p{Bidi_Control}]/u)
  })

  test('names a token whose id keeps it out of token list, and a user whose name a NUL cuts short', async () => {
    using made = await fillDatabase(10)
    runSql(
      made.database,
      'pragma foreign_keys = off',
      'update tokens set id = 0 where id = 1',
      'update tokens set id = 9007199254740992 where id = 2',
      "update users set name = 'me' || char(0) where name = 'me'",
    )

    expect(await check(made.database)).toEqual({
      stdout: '',
      stderr: `The database ${made.database} is damaged:
  user 1: name "me" is not 1 to 64 characters of A-Z a-z 0-9 . _ @ -
  token 0: id "0" is not between 1 and 9007199254740991
  token 9007199254740992: id "9007199254740992" is not between 1 and 9007199254740991
${RESTORE}\n`,
      exitCode: 3,
    })
  })

  test.each([
    ['a row that refers to none', 'create table a (id integer primary key)', 'create table b (a references a (id))'],
    ['a reference that cannot be', 'create table a (id)', 'create table b (a references a (id))'],
  ])('lets tables of other programs have %s', async (_, parent, child) => {
    using made = await fillDatabase(10)
    runSql(made.database, 'pragma foreign_keys = off', parent, child, 'insert into b values (5)')
    const { stderr, exitCode } = await check(made.database)

    expect({ stderr, exitCode }).toEqual({
      stderr: expect.stringMatching(/^Warning: .* table "a", table "b"\.\nThe database .* is whole\.\n$/),
      exitCode: 0,
    })
  })
})
