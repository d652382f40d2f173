import { describe, expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import type { StoreEvent } from '../../../src/store/engine.ts'
import { createUser } from '../fixtures.ts'
import {
  copyAsKilled,
  makeDatabase,
  makeDatabaseFolder,
  openForTest,
  overwrite,
  queryAll,
  refusalOf,
  runSql,
  snapshot,
} from './files.ts'

const TRIGGER = 'create trigger evil after insert on plants begin delete from plants; end'
const recreated = (table: string, from: string, to: string) => (path: string) => {
  const [[sql] = []] = queryAll(path, `select sql from sqlite_schema where name = '${table}'`)
  runSql(path, 'pragma foreign_keys = off', `drop table ${table}`, String(sql).replace(from, to))
}
/** Overwrites a text of the schema with one of the same length that SQLite itself would not write. */
const forged = (statement: string, from: string, to: string) => (path: string) => {
  runSql(path, statement)
  const position = readFileSync(path).indexOf(from)
  overwrite(path, position, Buffer.from(to))
}

const NOTES = 'create table notes (a);'
const OTHER_INDEX = 'drop index tokens_by_user; create index tokens_by_user on tokens (scope)'
const EVIL_INDEX = 'create index evil on plants (name)'

/** Changes of the schema that can change an answer, and how a refusal lists each. */
const REFUSED: readonly (readonly [name: string, change: string | ((path: string) => void), problem: string])[] = [
  ['a trigger', TRIGGER, 'trigger "evil"'],
  ['a trigger on a table of another program', `${NOTES}${TRIGGER.replace('on plants', 'on notes')}`, 'trigger "evil"'],
  ['a forged type', forged(TRIGGER, 'triggerevilplants', 'TRIGGERevilplants'), 'TRIGGER "evil"'],
  ['a view', 'create view evil as select * from plants', 'view "evil"'],
  ['a further column', 'alter table plants add column secret text', 'table "plants"'],
  ['another collation', recreated('plants', 'name text', 'name text collate nocase'), 'table "plants"'],
  ['a missing table', 'drop table plants', 'table "plants"'],
  ['another index', OTHER_INDEX, 'index "tokens_by_user"'],
  ['an index of a table of ours', EVIL_INDEX, 'index "evil"'],
  ['a forged table of an index', forged(EVIL_INDEX, 'indexevilplants', 'indexevilPLANTS'), 'index "evil"'],
  ['a foreign key to a table of ours', 'create table evil (x references PLANTS)', 'table "evil"'],
  ['several changes', 'create view v as select 1; drop index tokens_by_user', 'index "tokens_by_user", view "v"'],
  ['a name that forges a line', 'create view "a\n\u001b[2K" as select 1', String.raw`view "a\n\u001b[2K"`],
]

describe('a database whose schema another program has changed is refused, and stays unchanged', () => {
  test.each(REFUSED)('%s', async (_, change, problem) => {
    using files = makeDatabaseFolder()
    await makeDatabase(files.path)
    if (typeof change === 'string') runSql(files.path, change)
    else change(files.path)
    const before = snapshot(files.folder)

    expect(await refusalOf(files.path)).toBe(
      `The database ${files.path} has a schema that another program has changed: ${problem}. Undo that, or move the database with the -wal and -shm files beside it away and run plantstore restore: see docs/how-to/backup-restore.md.`,
    )
    expect(snapshot(files.folder)).toEqual(before)
  })

  test('a trigger that is only in the WAL', async () => {
    using live = makeDatabaseFolder()
    await using opened = await openForTest(live.path)
    await createUser(opened.store, 'me')
    runSql(live.path, TRIGGER)
    using killed = makeDatabaseFolder()
    copyAsKilled(live.path, killed.path)

    expect(await refusalOf(killed.path)).toContain('trigger "evil"')
  })

  test('more changes than a message lists', async () => {
    using files = makeDatabaseFolder()
    await makeDatabase(files.path)
    const name = 'x'.repeat(1000)
    runSql(files.path, ...Array.from({ length: 12 }, (_, index) => `create view ${name}${index} as select 1`))

    const refusal = await refusalOf(files.path)

    expect(refusal).toContain(`view "${'x'.repeat(100)}", `)
    expect(refusal).toContain(', 2 more. ')
    expect(refusal.length).toBeLessThan(2000)
  })
})

const RTREE_TABLES = ['notes', 'notes_rowid', 'notes_node', 'notes_parent'].map((name) => `table "${name}"`).join(', ')
const LITESTREAM = 'create table _litestream_seq (id integer primary key); create table _litestream_lock (id integer)'

/** Tables and indexes of other programs, and how the warning lists them. */
const TAKEN: readonly (readonly [name: string, sql: string, listed: string | undefined])[] = [
  ['a table with keys of its own', 'create table notes (a unique, b references notes (a))', 'table "notes"'],
  ['a virtual table', 'create virtual table notes using rtree (id, a, b)', RTREE_TABLES],
  ['a unique index of another table', `${NOTES} create unique index by_a on notes (a)`, 'table "notes", index "by_a"'],
  ['the tables of Litestream', LITESTREAM, undefined],
  ['a check in one', 'create table _litestream_seq (id integer check (id > 0))', 'table "_litestream_seq"'],
  ['the statistics of SQLite', 'analyze', undefined],
]

describe('a database with tables of other programs opens with one warning', () => {
  test.each(TAKEN)('%s', async (_, sql, listed) => {
    using files = makeDatabaseFolder()
    await makeDatabase(files.path)
    runSql(files.path, sql)
    const events: StoreEvent[] = []

    await using opened = await openForTest(files.path, { onEvent: (event) => events.push(event) })

    expect(await opened.store.checkIntegrity()).toEqual([])
    const message = `the database has objects of other programs, which no backup holds: ${listed}`
    expect(events).toEqual(listed === undefined ? [] : [{ level: 'warn', message, sizes: {} }])
  })

  test('a table in a database that has had no migration yet', async () => {
    using files = makeDatabaseFolder()
    runSql(files.path, `pragma application_id = ${Buffer.from('plst').readUInt32BE()}`, 'create table notes (text)')

    await using opened = await openForTest(files.path)

    expect(await createUser(opened.store, 'me')).toBe(1)
  })
})
