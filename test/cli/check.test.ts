import { expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { overwrite, runSql } from '../store/sqlite/files.ts'
import { runPlantstore } from '../support/executable.ts'
import { fillDatabase } from './support/database.ts'

const check = (database: string) => runPlantstore(['check', '--database', database])

test('check prints each problem in a line, with control characters as JSON escapes, and exits with 3', async () => {
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
