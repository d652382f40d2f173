import { describe, expect, test } from 'bun:test'
import { mkdirSync, readFileSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { overwrite, runSql, snapshot } from '../store/sqlite/files.ts'
import { makeFolder } from '../support/folder.ts'
import { createTokenIn } from '../support/tokens.ts'
import { expectRefusedStart } from './refused-start.ts'

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

/** Files that may be at the path of a database, and the message that refuses them. */
const UNUSABLE: readonly (readonly [name: string, message: RegExp, make: (path: string) => unknown])[] = [
  ['a directory', /is a directory/, (path) => mkdirSync(path)],
  ['a text file', /is not a database/, (path) => writeFileSync(path, 'Dear diary, '.repeat(PAGE_BYTES))],
  ['a database truncated by a byte', /is truncated/, truncated(-1)],
  ['a database truncated to some pages', /is truncated/, truncated(2 * PAGE_BYTES)],
  ['a database truncated to a part of the schema', /is truncated/, truncated(PAGE_BYTES / 2)],
  ['a database truncated to a part of the header', /is truncated/, truncated(HEADER_BYTES / 2)],
  ['a database with another first word', /is not a database/, damaged(0, 'SQLite FORMAT 3')],
  ['a database with another page size', /cannot be read|is truncated/, damaged(16, '\x11\x22')],
  ['a database with a newer file format', /cannot be read/, damaged(18, '\x07\x07')],
  ['a database with noise in its header', /another application/, damaged(16, NOISE.subarray(16, HEADER_BYTES))],
  ['a database with noise as its schema', /cannot be read/, damaged(HEADER_BYTES, NOISE.subarray(HEADER_BYTES))],
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

describe.concurrent('a start refuses with one line and exit code 3, and does not change', () => {
  test.each(UNUSABLE)('%s', async (_, message, make) => {
    using folder = makeFolder()
    const path = join(folder.path, 'plantstore.db')
    await make(path)
    const before = snapshot(folder.path)

    await expectRefusedStart(path, [message, path])

    expect(snapshot(folder.path)).toEqual(before)
  })
})
