import { describe, expect, test } from 'bun:test'
import { chmodSync, cpSync, existsSync, mkdirSync, readdirSync, statSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { holdTransaction } from '../fault/foreign-transaction.ts'
import { damageTable, overwrite, queryAll, runSql, snapshot } from '../store/sqlite/files.ts'
import { MOUNTS, mountDisk } from '../support/disk.ts'
import { dump } from '../support/dump.ts'
import { runPlantstore, serve } from '../support/executable.ts'
import { makeFolder } from '../support/folder.ts'
import { addPlants } from '../support/many-plants.ts'
import { lacks } from '../support/requirement.ts'
import { createTokenIn } from '../support/tokens.ts'

/** Bytes of a database's header, which its schema follows. */
const HEADER_BYTES = 100

/** A backup of one user's plants in a folder of its own, and a place for a database. */
async function makeBackup() {
  const folder = makeFolder()
  const [file, database] = [join(folder.path, 'backups', 'plants.db'), join(folder.path, 'data', 'plantstore.db')]
  for (const path of [file, database]) mkdirSync(join(path, '..'))
  const original = join(folder.path, 'original.db')
  const token = await createTokenIn(original, 'restored')
  addPlants(original, 1000)
  await runPlantstore(['backup', file, '--database', original])
  const before = snapshot(join(file, '..'))
  const restore = (...args: readonly string[]) => runPlantstore(['restore', file, '--database', database, ...args])
  return {
    file,
    database,
    data: join(database, '..'),
    token,
    content: dump(original),
    restore,
    expectBackupUntouched: () => expect(snapshot(join(file, '..'))).toEqual(before),
    [Symbol.dispose]: folder[Symbol.dispose],
  }
}

/** Puts another database where a backup is restored: one user of that name. */
const putOther = (database: string) => createTokenIn(database, 'other')

describe.concurrent('restore', () => {
  test('makes a backup the database, for its owner alone and without its record, and a server takes it', async () => {
    using made = await makeBackup()
    const { stdout, stderr, exitCode } = await made.restore()

    expect({ stdout, stderr, exitCode }).toEqual({
      stdout: `${made.database}\n`,
      stderr: `Restored ${statSync(made.database).size} bytes: users 1, tokens 1, plants 1000.\n`,
      exitCode: 0,
    })
    expect(readdirSync(made.data)).toEqual(['plantstore.db'])
    expect(statSync(made.database).mode & 0o777).toBe(0o600)
    expect(dump(made.database)).toEqual(made.content)
    expect(queryAll(made.database, "select name from sqlite_schema where name = 'backup_of'")).toEqual([])
    made.expectBackupUntouched()
    await using server = await serve(made.database)
    expect((await server.request('GET', '/plants?limit=1', { token: made.token })).status).toBe(200)
    expect(await server.end()).toBe(0)
  })

  test('refuses a database that is there, and replaces it with --force', async () => {
    using made = await makeBackup()
    await putOther(made.database)
    const before = snapshot(made.data)
    const refused = await made.restore()
    const after = snapshot(made.data)
    const forced = await made.restore('--force')

    expect(refused).toEqual({
      stdout: '',
      stderr: `plantstore: The database ${made.database} is there already: --force replaces it.\n`,
      exitCode: 3,
    })
    expect(after).toEqual(before)
    expect(forced).toMatchObject({ stdout: `${made.database}\n`, exitCode: 0 })
    expect(readdirSync(made.data)).toEqual(['plantstore.db'])
    expect(dump(made.database)).toEqual(made.content)
  })

  test('replaces what a killed server has left, its WAL included', async () => {
    using made = await makeBackup()
    const token = await putOther(made.database)
    await using server = await serve(made.database)
    await server.request('POST', '/plants', { token, body: { id: 77, name: 'Fern' } })
    await server.kill()
    expect(statSync(`${made.database}-wal`).size).toBeGreaterThan(0)
    const { exitCode } = await made.restore('--force')

    expect(exitCode).toBe(0)
    expect(readdirSync(made.data)).toEqual(['plantstore.db'])
    expect(dump(made.database)).toEqual(made.content)
  })

  test('refuses a database that a server has open, be it idle, with and without --force', async () => {
    using made = await makeBackup()
    const token = await putOther(made.database)
    await using server = await serve(made.database)
    const answers = [await made.restore(), await made.restore('--force')]
    const created = await server.request('POST', '/plants', { token, body: { id: 1, name: 'Fern' } })
    answers.push(await made.restore('--force'))

    for (const answer of answers) {
      expect(answer).toEqual({
        stdout: '',
        stderr: `plantstore: The database ${made.database} is open in another process: end it.\n`,
        exitCode: 3,
      })
    }
    expect([created.status, await server.end()]).toEqual([200, 0])
    expect(dump(made.database).plants).toEqual([[1n, 1n, 'Fern', null]])
  })

  test.each([
    ['reads, and has not begun anything', ['select count(*) from plants', 'begin']],
    ['is in the middle of a read', ['begin', 'select count(*) from plants']],
    ['is in the middle of a write', ['begin immediate', "update users set name = 'nobody'"]],
  ])('refuses a database that a program of others has open, which %s', async (_, statements) => {
    using made = await makeBackup()
    await putOther(made.database)
    await using holder = await holdTransaction(made.database, ...statements)
    const refused = await made.restore('--force')
    await holder.release()
    const restored = await made.restore('--force')

    expect(refused).toMatchObject({
      stderr: `plantstore: The database ${made.database} is open in another process: end it.\n`,
      exitCode: 3,
    })
    expect(restored.exitCode).toBe(0)
  })

  test('refuses what is no whole backup, in one line, and leaves the database as it was', async () => {
    using made = await makeBackup()
    await putOther(made.database)
    const before = snapshot(made.data)
    const bad = (name: string, spoil: (path: string) => void) => {
      const path = join(made.file, '..', name)
      cpSync(made.file, path)
      spoil(path)
      return path
    }
    const refused = [
      [
        bad('cut.db', (path) => truncateSync(path, statSync(path).size - 1)),
        /: The backup \S+cut\.db is truncated\. Name another one: nothing was changed\.\n$/,
      ],
      [
        bad('schema.db', (path) => overwrite(path, HEADER_BYTES, Buffer.alloc(HEADER_BYTES, 0xa5))),
        /: The backup \S+schema\.db cannot be read: .+\. Name another one: nothing was changed\.\n$/,
      ],
      [bad('text.db', (path) => writeFileSync(path, 'Fern\n')), /is not a database\./],
      [bad('empty.db', (path) => truncateSync(path, 0)), /is not a database\./],
      [
        bad('page.db', (path) => damageTable(path, 'plants')),
        /: The backup \S+page\.db is damaged: .+\. Name another one: nothing was changed\.\n$/,
      ],
      [bad('foreign.db', (path) => runSql(path, 'pragma application_id = 7')), /belongs to another application/],
      [bad('newer.db', (path) => runSql(path, 'pragma user_version = 99')), /has schema version 99/],
      [
        bad('trigger.db', (path) => runSql(path, 'create trigger evil after insert on plants begin select 1; end')),
        /: The backup \S+trigger\.db has a schema that another program has changed: added trigger "evil"\. Name another/,
      ],
      [
        bad('view.db', (path) => runSql(path, 'create view "a\u001b\u009b" as select 1')),
        /added view "a\\u001b\\u009b"/,
      ],
      [bad('column.db', (path) => runSql(path, 'alter table plants add column x text')), /changed table "plants"/],
      [bad('orphan.db', (path) => runSql(path, 'delete from users')), /is damaged: a row of \w+ belongs to no user/],
      [join(made.file, '..'), /is not a regular file/],
      [join(made.file, '..', 'nowhere.db'), /There is no file/],
    ] as const

    for (const [file, reason] of refused) {
      const { stdout, stderr, exitCode } = await runPlantstore([
        'restore',
        file,
        '--force',
        '--database',
        made.database,
      ])
      expect({ file, stdout, exitCode }).toEqual({ file, stdout: '', exitCode: 3 })
      expect(stderr).toMatch(/^plantstore: [^\n]+\n$/)
      expect(stderr).toMatch(reason)
    }
    expect(snapshot(made.data)).toEqual(before)
  })

  test('drops the tables and indexes of other programs and says so, and keeps those of Litestream and SQLite', async () => {
    using made = await makeBackup()
    runSql(
      made.file,
      'create table "notes\u202e" (text); insert into "notes\u202e" values (1)',
      'create virtual table texts using rtree (id, a, b)',
      'create index by_name on plants (name)',
      'create table _litestream_seq (id integer primary key, seq integer); insert into _litestream_seq values (1, 7)',
      'analyze',
    )
    const { stderr, exitCode } = await made.restore()

    expect({ stderr, exitCode }).toEqual({
      stderr: `Dropped the objects of other programs: table "notes\\u202e", table "texts", table "texts_rowid", table "texts_node", table "texts_parent", index "by_name".
Restored ${statSync(made.database).size} bytes: users 1, tokens 1, plants 1000.\n`,
      exitCode: 0,
    })
    expect(dump(made.database)).toMatchObject({ plants: made.content.plants, tokens: made.content.tokens })
    expect(
      queryAll(made.database, `select name from sqlite_schema where sql is not null order by name`).flat(),
    ).toEqual(['_litestream_seq', 'plants', 'sqlite_sequence', 'sqlite_stat1', 'tokens', 'tokens_by_user', 'users'])
    expect(queryAll(made.database, 'select * from _litestream_seq')).toEqual([[1n, 7n]])
    expect(
      queryAll(made.database, `select stat from sqlite_stat1 where tbl = 'plants' and idx = 'plants'`),
    ).toHaveLength(1)
  })

  test('refuses a database in use as a backup: it may be half of what there is', async () => {
    using made = await makeBackup()
    const live = join(made.data, 'live.db')
    const token = await putOther(live)
    await using server = await serve(live)
    await server.request('POST', '/plants', { token, body: { id: 1, name: 'Fern' } })
    const { stderr, exitCode } = await runPlantstore(['restore', live, '--database', made.database])

    expect({ stderr, exitCode }).toEqual({
      stderr: `plantstore: ${live} is a database in use: make a backup of it by plantstore backup.\n`,
      exitCode: 3,
    })
    expect(existsSync(made.database)).toBe(false)
  })

  test('refuses a place where a WAL without its database is left, and names it', async () => {
    using made = await makeBackup()
    writeFileSync(`${made.database}-wal`, 'left')
    const { stderr, exitCode } = await made.restore('--force')

    expect(exitCode).toBe(3)
    expect(stderr).toStartWith(`plantstore: ${made.database}-wal would be taken for a part of what is restored: `)
    expect(readdirSync(made.data)).toEqual(['plantstore.db-wal'])
  })

  test('takes a backup that nobody may write, in a folder of others', async () => {
    using made = await makeBackup()
    chmodSync(made.file, 0o400)
    const { exitCode } = await made.restore()

    expect(exitCode).toBe(0)
    expect(dump(made.database)).toEqual(made.content)
    made.expectBackupUntouched()
  })

  test.skipIf(lacks(MOUNTS))('without space leaves the database as it was', async () => {
    using made = await makeBackup()
    using disk = mountDisk(200_000)
    const database = join(disk.path, 'plantstore.db')
    // By a process of its own, that has ended: files that are deleted and open take space for some time.
    await runPlantstore(['token', 'create', '--user', 'other', '--database', database])
    disk.fillUp(20_000)
    const before = snapshot(disk.path)
    const { stderr, exitCode } = await runPlantstore(['restore', made.file, '--force', '--database', database])

    expect(exitCode).toBe(1)
    expect(stderr).toMatch(/there is no space/)
    expect(snapshot(disk.path)).toEqual(before)
  })

  test('without a file is misused, and so is stdin, and the database itself', async () => {
    using made = await makeBackup()
    await putOther(made.database)
    const before = snapshot(made.data)
    const without = await runPlantstore(['restore', '--database', made.database])
    const itself = await runPlantstore(['restore', made.database, '--force', '--database', made.database])

    const stdin = await runPlantstore(['restore', '-', '--force', '--database', made.database], { stdin: 'Fern' })

    expect([without.exitCode, itself.exitCode, stdin.exitCode]).toEqual([2, 2, 2])
    expect(stdin.stderr).toBe('plantstore: restore does not read stdin: save the backup as a file and name it.\n')
    expect(itself.stderr).toBe(`plantstore: ${made.database} is the database itself: name a backup of it.\n`)
    expect(snapshot(made.data)).toEqual(before)
  })
})
