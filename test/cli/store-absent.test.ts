import { expect, test } from 'bun:test'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { runPlantstore } from '../support/executable.ts'
import { makeFolder } from '../support/folder.ts'

test('a database that is not there is made by serve and token create alone', async () => {
  using folder = makeFolder()
  const path = join(folder.path, 'plants.db')
  const commands = ['token list', 'token revoke 1', 'user list', 'user delete me --yes', 'check']
  const answers = await Promise.all(
    commands.map((command) => runPlantstore([...command.split(' '), '--database', path])),
  )

  for (const { stdout, stderr, exitCode } of answers) {
    expect({ stdout, exitCode }).toEqual({ stdout: '', exitCode: 3 })
    expect(stderr).toMatch(/^plantstore: There is no database [^\n]+\n$/)
  }
  expect(readdirSync(folder.path)).toEqual([])
})
