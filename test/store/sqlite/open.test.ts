import { Database } from 'bun:sqlite'
import { expect, test } from 'bun:test'
import { INT64_MAX, INT64_MIN } from '../../../src/domain/int64.ts'
import { PLANT_FIELDS } from '../../../src/domain/plant.ts'
import { LOCK_MAX_WAIT_MS } from '../../../src/store/group-queue.ts'
import { openImmutable, openReader, openWriter } from '../../../src/store/sqlite/driver.ts'
import { SLACK_MS } from '../../support/slack.ts'
import { createUser } from '../fixtures.ts'
import { makeDatabase, makeDatabaseFolder, openForTest, queryAll, refusalOf } from './files.ts'

test('every connection distrusts functions in a schema and checks the cells of the pages that it reads', async () => {
  using files = makeDatabaseFolder()
  await makeDatabase(files.path)

  for (const open of [
    () => openWriter(files.path, 'full'),
    () => openReader(files.path),
    () => openImmutable(files.path),
  ]) {
    using db = open()
    const [row] = db.prepare('select * from pragma_trusted_schema, pragma_cell_size_check').values()
    expect(row?.map(Number)).toEqual([0, 1])
  }
})

test.each([
  ['full', 2n],
  ['normal', 1n],
] as const)('the connection that writes with durability %s has all its pragmas', (durability, synchronous) => {
  using files = makeDatabaseFolder()
  using writer = openWriter(files.path, durability)
  const pragmas = ['journal_mode', 'synchronous', 'busy_timeout', 'foreign_keys', 'wal_autocheckpoint', 'fullfsync']
  const values = pragmas.map((name) => [name, writer.prepare(`pragma ${name}`).values().flat()[0]])

  expect(Object.fromEntries(values)).toEqual({
    journal_mode: 'wal',
    synchronous,
    busy_timeout: BigInt(LOCK_MAX_WAIT_MS),
    foreign_keys: 1n,
    wal_autocheckpoint: 0n,
    fullfsync: 1n,
  })
})

test('the connection that reads cannot write, and waits for locks', async () => {
  using files = makeDatabaseFolder()
  await using _ = await openForTest(files.path)
  using reader = openReader(files.path)

  expect(() => reader.run("insert into users (name, created_at_ms) values ('me', 0)")).toThrow('readonly')
  expect(reader.prepare('pragma busy_timeout').values()).toEqual([[BigInt(LOCK_MAX_WAIT_MS)]])
})

test('a new database has strict tables with plain columns', async () => {
  using files = makeDatabaseFolder()
  await using _ = await openForTest(files.path)

  const tables = queryAll(
    files.path,
    `select tables.name, group_concat(columns.name || ' ' || columns.type, ', ' order by cid)
     from pragma_table_list as tables join pragma_table_info(tables.name) as columns
     where tables.strict group by tables.name`,
  )

  expect(Object.fromEntries(tables)).toEqual({
    last_backup: 'id INTEGER, at_ms INTEGER, bytes INTEGER',
    plants: ['user_id INTEGER', 'id INTEGER', ...PLANT_FIELDS.map((field) => `${field} TEXT`)].join(', '),
    tokens:
      'id INTEGER, user_id INTEGER, hash BLOB, scope TEXT, label TEXT, created_at_ms INTEGER, expires_at_ms INTEGER, ' +
      'revoked_at_ms INTEGER, last_used_at_ms INTEGER, replaced_by INTEGER',
    users: 'id INTEGER, name TEXT, created_at_ms INTEGER, blocked_at_ms INTEGER',
  })
})

test('other programs find ids as integers and absent tags as null', async () => {
  using files = makeDatabaseFolder()
  await using opened = await openForTest(files.path)
  const user = await createUser(opened.store, 'me')
  await opened.store.createPlant(user, { id: INT64_MIN, name: 'Fern', tag: 'indoor' })
  await opened.store.createPlant(user, { id: INT64_MAX, name: '🌱' })

  const rows = queryAll(
    files.path,
    `select users.name, plants.id, typeof(plants.id), plants.name, tag
     from plants join users on users.id = user_id order by plants.id`,
  )

  expect(rows).toEqual([
    ['me', INT64_MIN, 'integer', 'Fern', 'indoor'],
    ['me', INT64_MAX, 'integer', '🌱', null],
  ])
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
