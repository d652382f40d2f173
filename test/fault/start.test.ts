import { describe, expect, test } from 'bun:test'
import { chmodSync, mkdirSync, readdirSync, readFileSync, truncateSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { overwrite, runSql, snapshot } from '../store/sqlite/files.ts'
import { MOUNTS, mountDisk } from '../support/disk.ts'
import { runPlantstore } from '../support/executable.ts'
import { makeFolder } from '../support/folder.ts'
import { lacks } from '../support/requirement.ts'
import { RESTRICTED, SETPRIV } from '../support/restricted.ts'
import { createTokenIn } from '../support/tokens.ts'

/** Commands that open a database. The first two make it if it does not exist. */
const COMMANDS = ['serve --listen 127.0.0.1:0', 'token create --user me', 'check']
const DISK_BYTES = 24 * 1024 ** 2
const PAGE_BYTES = 4096
const HEADER_BYTES = 100
const NOISE = Buffer.alloc(PAGE_BYTES, 0xa5)

/** Makes a database and overwrites bytes of its first page. */
const damaged = (position: number, bytes: string | Buffer) => async (path: string) => {
  await createTokenIn(path)
  overwrite(path, position, Buffer.from(bytes))
}

/** Makes a database and truncates it to a length, or by a negative number of bytes. */
const truncated = (bytes: number) => async (path: string) => {
  await createTokenIn(path)
  truncateSync(path, bytes < 0 ? readFileSync(path).length + bytes : bytes)
}

/** Makes a database and changes it by a foreign program. */
const changed = (sql: string) => async (path: string) => {
  await createTokenIn(path)
  runSql(path, sql)
}

/** Makes a database and changes its mode. */
const withMode = (mode: number) => async (path: string) => {
  await createTokenIn(path)
  chmodSync(path, mode)
}

/** What may be at the path of a database, and the message that refuses it. test/store/sqlite/preflight.test.ts has further ones. */
type Rows = readonly (readonly [name: string, message: RegExp, make: (path: string) => unknown])[]

const UNUSABLE: Rows = [
  ['a directory', /is a directory/, (path) => mkdirSync(path)],
  ['a text file', /is not a database/, (path) => writeFileSync(path, 'Dear diary, '.repeat(PAGE_BYTES))],
  ['a database truncated by a byte', /is truncated/, truncated(-1)],
  ['a database truncated to some pages', /is truncated/, truncated(2 * PAGE_BYTES)],
  ['a database truncated to a part of the schema', /is truncated/, truncated(PAGE_BYTES / 2)],
  ['a database truncated to a part of the header', /is truncated/, truncated(HEADER_BYTES / 2)],
  ['a database with another first word', /is not a database/, damaged(0, 'SQLite FORMAT 3')],
  ['a database with another page size', /is damaged|is truncated/, damaged(16, '\x11\x22')],
  ['a database with a newer file format', /is damaged/, damaged(18, '\x07\x07')],
  ['a database with noise in its header', /another application/, damaged(16, NOISE.subarray(16, HEADER_BYTES))],
  ['a database with noise as its schema', /is damaged/, damaged(HEADER_BYTES, NOISE.subarray(HEADER_BYTES))],
  ['a database with zeros as its first page', /is not a database/, damaged(0, Buffer.alloc(PAGE_BYTES))],
  ['a database of another application', /another application/, changed('pragma application_id = 252006673')],
  [
    'a database of another application without an application id',
    /another application/,
    (path) => runSql(path, 'create table notes (text)'),
  ],
  [
    'a database of a newer schema',
    /schema version 2147483647.*use the newer/,
    changed('pragma user_version = 2147483647'),
  ],
]

/** Root may read and write anything, so these are tried without its rights. */
const UNREACHABLE: Rows = [
  [
    'a database whose directory the process may not write',
    /: The directory \S+ is not writable: let this user write to it\.$/m,
    (path) => chmodSync(dirname(path), 0o500),
  ],
  ['a database that the process may only read', /cannot be read and written/, withMode(0o400)],
  ['a database that the process may only write', /cannot be read and written/, withMode(0o200)],
  ['a database that the process may neither read nor write', /cannot be read and written/, withMode(0o000)],
]

describe.concurrent('a start refuses with one line and exit code 3, and does not change', () => {
  test.each(UNUSABLE)('%s', async (_, message, make) => {
    using folder = makeFolder()
    const path = join(folder.path, 'plantstore.db')
    await make(path)
    const before = snapshot(folder.path)

    await expectRefused(path, message)

    expect(snapshot(folder.path)).toEqual(before)
  })

  test.skipIf(lacks(SETPRIV)).each(UNREACHABLE)('%s', async (_, message, make) => {
    using folder = makeFolder()
    const path = join(folder.path, 'data', 'plantstore.db')
    mkdirSync(dirname(path))
    await make(path)
    const before = readdirSync(folder.path, { recursive: true })

    await expectRefused(path, message, RESTRICTED)

    expect(readdirSync(folder.path, { recursive: true })).toEqual(before)
  })

  test.skipIf(lacks(MOUNTS))('a database on a full disk', async () => {
    using disk = mountDisk(DISK_BYTES)
    const path = join(disk.path, 'plantstore.db')
    await createTokenIn(path)
    const before = readFileSync(path)
    disk.fillUp()

    await expectRefused(path, /There is no space for the database/)
    // `check`, which makes no database, finds none, or the empty file that the other commands have left.
    await expectRefused(join(disk.path, 'new.db'), /There is no (?:space for the )?database|has nothing in it yet/)

    expect(readFileSync(path).equals(before)).toBe(true)
  })
})

/** Expects the commands to end with 3 and with one line that matches this message. */
async function expectRefused(database: string, message: RegExp, under: readonly string[] = []): Promise<void> {
  const run = (command: string) => runPlantstore([...command.split(' '), '--database', database], { under })
  for (const { stdout, stderr, exitCode } of await Promise.all(COMMANDS.map(run))) {
    expect({ stdout, exitCode }).toEqual({ stdout: '', exitCode: 3 })
    expect(stderr).toMatch(/^plantstore: [^\n]+\n$/)
    expect(stderr).toMatch(message)
    expect(stderr).toContain(dirname(database))
  }
}
