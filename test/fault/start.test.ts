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

/** A database in which bytes of the first page are others. */
const damaged = (position: number, bytes: string | Buffer) => async (path: string) => {
  await createTokenIn(path)
  overwrite(path, position, Buffer.from(bytes))
}

/** One that ends before its end; a negative number of bytes is counted from there. */
const truncated = (bytes: number) => async (path: string) => {
  await createTokenIn(path)
  truncateSync(path, bytes < 0 ? readFileSync(path).length + bytes : bytes)
}

/** One that somebody's program has changed. */
const changed = (sql: string) => async (path: string) => {
  await createTokenIn(path)
  runSql(path, sql)
}

/** What can be at the path of a database: how to bring it about, and what the line must say. */
const UNUSABLE: readonly (readonly [name: string, told: RegExp, make: (path: string) => unknown])[] = [
  ['a directory', /is a directory/, (path) => mkdirSync(path)],
  ['a text file', /is not a database/, (path) => writeFileSync(path, 'Dear diary, '.repeat(PAGE_BYTES))],
  ['truncated by a byte', /is truncated/, truncated(-1)],
  ['truncated to some pages', /is truncated/, truncated(2 * PAGE_BYTES)],
  ['truncated to a part of the schema', /is truncated/, truncated(PAGE_BYTES / 2)],
  ['truncated to a part of the header', /is truncated/, truncated(HEADER_BYTES / 2)],
  ['a database whose header begins with something else', /is not a database/, damaged(0, 'SQLite FORMAT 3')],
  ['a database whose header has another page size', /cannot be read|is truncated/, damaged(16, '\x11\x22')],
  ['a database whose header has a newer file format', /cannot be read/, damaged(18, '\x07\x07')],
  ['a database whose header has noise', /another application/, damaged(16, NOISE.subarray(16, HEADER_BYTES))],
  ['a database whose schema is noise', /cannot be read/, damaged(HEADER_BYTES, NOISE.subarray(HEADER_BYTES))],
  ['a database whose first page is zeros', /is not a database/, damaged(0, Buffer.alloc(PAGE_BYTES))],
  ['of another application', /another application/, changed('pragma application_id = 252006673')],
  [
    'of another application that has not said so',
    /another application/,
    (path) => runSql(path, 'create table notes (text)'),
  ],
  ['of a newer schema', /schema version 2147483647.*use the newer/, changed('pragma user_version = 2147483647')],
]

describe.concurrent('at the start, in one line that says so and with 3, a file is refused and left as it is', () => {
  test.each(UNUSABLE)('that is %s', async (_, told, make) => {
    using folder = makeFolder()
    const path = join(folder.path, 'plantstore.db')
    await make(path)
    const before = snapshot(folder.path)

    await expectRefusedStart(path, [told, path])

    expect(snapshot(folder.path)).toEqual(before)
  })
})
