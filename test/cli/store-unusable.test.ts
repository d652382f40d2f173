import { Database } from 'bun:sqlite'
import { describe, expect, test } from 'bun:test'
import { mkdirSync, readdirSync, readFileSync, statSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { runPlantstore } from '../support/executable.ts'
import { makeFolder } from '../support/folder.ts'
import { createTokenIn } from '../support/tokens.ts'

const PAGE_BYTES = 4096

const change = (path: string, sql: string) => {
  using db = new Database(path)
  db.run(sql)
}

/** Ways in which the path of a database is none: how to bring it about in a folder, and what the line must say. */
const UNUSABLE: readonly (readonly [name: string, told: RegExp, make: (path: string) => unknown])[] = [
  ['is a directory', /directory/, (path) => mkdirSync(path)],
  ['is a text file', /not a database/, (path) => writeFileSync(path, 'Dear diary, '.repeat(PAGE_BYTES))],
  [
    'belongs to another application',
    /another application/,
    async (path) => {
      await createTokenIn(path)
      change(path, 'pragma application_id = 252006673')
    },
  ],
  [
    'is the database of a program without an application id',
    /another application/,
    (path) => change(path, 'create table notes (text)'),
  ],
  [
    'is newer',
    /newer/,
    async (path) => {
      await createTokenIn(path)
      change(path, 'pragma user_version = 2147483647')
    },
  ],
  [
    'is truncated',
    /truncated/,
    async (path) => {
      await createTokenIn(path)
      truncateSync(path, 2 * PAGE_BYTES)
    },
  ],
  [
    'has a damaged schema',
    /cannot be read|damaged/,
    async (path) => {
      await createTokenIn(path)
      const bytes = readFileSync(path)
      writeFileSync(path, bytes.fill(0xa5, 100, PAGE_BYTES))
    },
  ],
]

const COMMANDS = ['serve --listen 127.0.0.1:0', 'token create --user me', 'check']

const fingerprint = (path: string) => {
  const file = statSync(path, { throwIfNoEntry: false })
  return file?.isFile() ? String(Bun.hash(readFileSync(path))) : file?.isDirectory()
}

describe.concurrent('a database that cannot be used', () => {
  test.each(UNUSABLE)('because it %s is refused in one line with 3, its bytes unchanged', async (_, told, make) => {
    using folder = makeFolder()
    const path = join(folder.path, 'plants.db')
    await make(path)
    const before = fingerprint(path)
    const answers = await Promise.all(
      COMMANDS.map((command) => runPlantstore([...command.split(' '), '--database', path])),
    )

    for (const { stdout, stderr, exitCode } of answers) {
      expect({ stdout, exitCode }).toEqual({ stdout: '', exitCode: 3 })
      expect(stderr).toMatch(/^plantstore: [^\n]+\n$/)
      expect(stderr).toMatch(told)
      expect(stderr).toContain(path)
    }
    expect(fingerprint(path)).toEqual(before)
  })

  test.each([
    ['because its directory is missing', 'missing', /does not exist/],
    ['because its directory is a file', 'file', /not a directory/],
  ])('%s is refused in one line with 3', async (_, directory, told) => {
    using folder = makeFolder()
    writeFileSync(join(folder.path, 'file'), '')
    const path = join(folder.path, directory, 'plants.db')
    const answers = await Promise.all(
      COMMANDS.map((command) => runPlantstore([...command.split(' '), '--database', path])),
    )

    for (const { stdout, stderr, exitCode } of answers) {
      expect({ stdout, exitCode }).toEqual({ stdout: '', exitCode: 3 })
      expect(stderr).toMatch(/^plantstore: [^\n]+\n$/)
      expect(stderr).toMatch(told)
    }
    expect(readdirSync(folder.path)).toEqual(['file'])
  })

  test('because it is not there is made by serve and token create alone', async () => {
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
})
