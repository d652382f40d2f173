import { Database } from 'bun:sqlite'
import { expect, test } from 'bun:test'
import { migrate, requireSafeSqlite } from '../../../src/engine/sqlite/migrate.ts'
import { MIGRATIONS, PLANT_FORMAT, SCHEMA_VERSION } from '../../../src/store/sqlite/format.ts'
import { createUser } from '../../store/fixtures.ts'
import { makeDatabaseFolder, openForTest, queryAll, runSql } from '../../store/sqlite/files.ts'

const SCHEMA = 'select name from sqlite_schema order by name'
const VERSIONS = 'select user_version, application_id from pragma_user_version, pragma_application_id'
const OURS = 0x706c7374

test('a migration that fails leaves nothing, and the next start does it once the table in its way is gone', async () => {
  using files = makeDatabaseFolder()
  runSql(files.path, `pragma application_id = ${OURS}`, 'create table plants (text)')
  {
    using writer = new Database(files.path, { readwrite: true })
    expect(() => migrate(writer, files.path, PLANT_FORMAT)).toThrow('table plants already exists')
  }
  expect(queryAll(files.path, SCHEMA)).toEqual([['plants']])
  expect(queryAll(files.path, VERSIONS)).toEqual([[0n, BigInt(OURS)]])
  runSql(files.path, 'drop table plants')

  await using opened = await openForTest(files.path)

  expect(await opened.store.checkIntegrity()).toEqual([])
  expect(await createUser(opened.store, 'me')).toBe(1)
})

test('a database of the first schema is migrated, and keeps its users, tokens and plants', async () => {
  using files = makeDatabaseFolder()
  const [first = ''] = MIGRATIONS
  runSql(
    ...[files.path, first, `pragma application_id = ${OURS}`, 'pragma user_version = 1'],
    "insert into users (id, name, created_at_ms) values (3, 'me', 5)",
    "insert into plants (user_id, id, name) values (3, 7, 'Fern')",
    `insert into tokens (id, user_id, hash, scope, label, created_at_ms, expires_at_ms)
     values (4, 3, zeroblob(32), 'read', 'laptop', 6, 7)`,
  )

  await using opened = await openForTest(files.path, { onRaised() {} })

  expect(queryAll(files.path, VERSIONS)).toEqual([[BigInt(SCHEMA_VERSION), BigInt(OURS)]])
  expect(await opened.store.listUsers()).toEqual([
    { name: 'me', createdAtMs: 5, plants: 1, tokens: 1, blockedAtMs: undefined },
  ])
  expect(await opened.store.listTokens()).toMatchObject([
    { id: 4, label: 'laptop', expiresAtMs: 7, replacedBy: undefined, userBlockedAtMs: undefined },
  ])
  expect(await opened.store.setUserBlock('me', 8)).toBe(true)
})

test('a database that a newer executable migrates after our inspection is refused', () => {
  using files = makeDatabaseFolder()
  runSql(files.path, `pragma user_version = ${SCHEMA_VERSION + 1}`)
  using writer = new Database(files.path, { readwrite: true })

  expect(() => migrate(writer, files.path, PLANT_FORMAT)).toThrow(`has schema version ${SCHEMA_VERSION + 1}`)
  expect(queryAll(files.path, SCHEMA)).toEqual([])
})

test('an open store keeps the version of a newer executable that migrates meanwhile', async () => {
  using files = makeDatabaseFolder()
  await using opened = await openForTest(files.path)
  runSql(files.path, `pragma user_version = ${SCHEMA_VERSION + 1}`)

  await opened.store.checkReady().catch(() => 'unready is an answer, too')

  expect(queryAll(files.path, 'pragma user_version')).toEqual([[BigInt(SCHEMA_VERSION + 1)]])
})

test('SQLite versions that can corrupt a shared database are refused, later ones are not', () => {
  for (const version of ['3.51.2', '3.50.9', '3.7.17']) {
    expect(() => requireSafeSqlite(version)).toThrow(`SQLite ${version} can corrupt a shared database`)
  }
  for (const version of ['3.51.3', '3.52.0', '4.0.0']) expect(() => requireSafeSqlite(version)).not.toThrow()
})
