import { expect, test } from 'bun:test'
import { readdirSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { runPlantstore } from '../support/executable.ts'
import { makeFolder } from '../support/folder.ts'

const COMMANDS = ['token list', 'token revoke 1', 'user list', 'user delete me --yes', 'check', 'export', 'status']

const runAll = (path: string) =>
  Promise.all(COMMANDS.map((command) => runPlantstore([...command.split(' '), '--database', path])))

test('only serve and token create make a missing database', async () => {
  using folder = makeFolder()
  const path = join(folder.path, 'plants.db')
  const answers = await runAll(path)

  for (const { stdout, stderr, exitCode } of answers) {
    expect({ stdout, exitCode }).toEqual({ stdout: '', exitCode: 3 })
    expect(stderr).toMatch(/^plantstore: There is no database [^\n]+\n$/)
  }
  expect(readdirSync(folder.path)).toEqual([])
})

test('only serve and token create make a database of an empty file', async () => {
  using folder = makeFolder()
  const path = join(folder.path, 'plants.db')
  writeFileSync(path, '')
  const answers = await runAll(path)

  for (const answer of answers) {
    expect(answer).toEqual({
      stdout: '',
      stderr: `plantstore: The database ${path} has nothing in it yet.\n`,
      exitCode: 3,
    })
  }
  expect(readdirSync(folder.path)).toEqual(['plants.db'])
  expect(statSync(path).size).toBe(0)
})

test.each([
  ['that is not there', 'nothing', 'there is no such file'],
  ['that is a directory', '.', 'it is a directory'],
])('a password file %s is refused in one sentence, with exit code 3', async (_, name, reason) => {
  using folder = makeFolder()
  const where = 'postgres://me@127.0.0.1:1/plants'
  const file = join(folder.path, name)
  const from = ['copy', '--from', where, '--to', join(folder.path, 'copy.db'), '--from-password-file', file]
  const answers = [
    await runPlantstore(['user', 'list', '--database', where, '--database-password-file', file]),
    await runPlantstore(from),
  ]

  const stderr = `plantstore: The database ${where} cannot be used: the file ${file} cannot be read, because ${reason}.\n`
  expect(answers).toEqual(Array(2).fill({ stdout: '', stderr, exitCode: 3 }))
})
