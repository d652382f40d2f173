import { Database } from 'bun:sqlite'
import { expect, test } from 'bun:test'
import { copyFileSync, renameSync } from 'node:fs'
import { LOCK_MAX_WAIT_MS } from '../../../src/engine/group-queue.ts'
import { openImmutable, openLocked, openReader, openWriteConnection } from '../../../src/engine/sqlite/driver.ts'
import { makeDatabase, makeDatabaseFolder, refusalOf } from '../../store/sqlite/files.ts'
import { SLACK_MS } from '../../support/slack.ts'

const SAFE = { trusted_schema: 0, cell_size_check: 1 }
const WAITS = { ...SAFE, busy_timeout: LOCK_MAX_WAIT_MS }
const WRITES = { ...WAITS, journal_mode: 'wal', foreign_keys: 1, wal_autocheckpoint: 0, fullfsync: 1, secure_delete: 1 }

test.each<[string, (path: string) => Database, Readonly<Record<string, string | number>>]>([
  ['writes with durability full', (path) => openWriteConnection(path, 'full'), { ...WRITES, synchronous: 2 }],
  ['writes with durability normal', (path) => openWriteConnection(path, 'normal'), { ...WRITES, synchronous: 1 }],
  ['reads', openReader, WAITS],
  ['leaves no trace', openImmutable, SAFE],
])('a connection that %s has all its pragmas', async (_, open, pragmas) => {
  using files = makeDatabaseFolder()
  await makeDatabase(files.path)
  using db = open(files.path)
  const values = Object.keys(pragmas).map((name) => [name, db.prepare(`pragma ${name}`).values().flat()[0]])

  expect(
    Object.fromEntries(values.map(([name, value]) => [name, typeof value === 'bigint' ? Number(value) : value])),
  ).toEqual(pragmas)
  if (!('synchronous' in pragmas)) expect(() => db.run('create table notes (text)')).toThrow('readonly')
})

test.each([
  ['an empty database', () => {}, 'begin exclusive'],
  [
    'a database with writes in its WAL',
    makeDatabase,
    `pragma locking_mode = exclusive; insert into users (name, created_at_ms) values ('you', 0)`,
  ],
])('%s that another process keeps locked is refused in one line', async (_, make, lock) => {
  using files = makeDatabaseFolder()
  await make(files.path)
  using other = new Database(files.path, { create: true, readwrite: true })
  other.run(lock)
  const startMs = performance.now()

  const refusal = await refusalOf(files.path)

  expect(refusal).toBe(`The database ${files.path} is locked by another process: end it.`)
  expect(performance.now() - startMs).toBeLessThan(2 * LOCK_MAX_WAIT_MS + SLACK_MS)
})

test('a database that is replaced at each opening is opened ten times, and then refused', async () => {
  using files = makeDatabaseFolder()
  await makeDatabase(files.path)
  const other = `${files.path}.other`
  let openings = 0
  const replace = () => {
    openings++
    copyFileSync(files.path, other)
    renameSync(other, files.path)
  }

  expect(() => openLocked(files.path, { readonly: true }, replace)).toThrow(
    `The database ${files.path} is being replaced by another process: try again.`,
  )
  expect(openings).toBe(10)
})
