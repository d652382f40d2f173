import { afterAll, describe, expect, test } from 'bun:test'
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
import { storedPlants } from '../support/stored.ts'
import { createTokenIn } from '../support/tokens.ts'
import { refusal, refusalWith } from './support/answers.ts'

/** Bytes of a database's header, which its schema follows. */
const HEADER_BYTES = 100

/** A backup with 1000 plants. */
async function makeOriginal() {
  const folder = makeFolder()
  const [original, file] = [join(folder.path, 'original.db'), join(folder.path, 'plants.db')]
  await createTokenIn(original, 'restored')
  addPlants(original, 1000)
  await runPlantstore(['backup', file, '--database', original])
  return { file, content: dump(original), [Symbol.dispose]: folder[Symbol.dispose] }
}
let backup: ReturnType<typeof makeOriginal> | undefined
afterAll(async () => (await backup)?.[Symbol.dispose]())

/** A copy of the backup of 1000 plants that all tests share, and a folder for a database. */
async function makeBackup() {
  backup ??= makeOriginal()
  const { content, file: original } = await backup
  const folder = makeFolder()
  const [file, database] = [join(folder.path, 'backups', 'plants.db'), join(folder.path, 'data', 'plantstore.db')]
  for (const path of [file, database]) mkdirSync(join(path, '..'))
  cpSync(original, file)
  const before = snapshot(join(file, '..'))
  const restore = (...args: readonly string[]) => runPlantstore(['restore', file, '--database', database, ...args])
  return {
    file,
    database,
    data: join(database, '..'),
    content,
    restore,
    expectBackupUntouched: () => expect(snapshot(join(file, '..'))).toEqual(before),
    [Symbol.dispose]: folder[Symbol.dispose],
  }
}

/** Makes another database at the path. */
const putOther = (database: string) => createTokenIn(database, 'other')

describe.concurrent('restore', () => {
  test('makes a backup a database that only its owner may read, and leaves the backup as it is', async () => {
    using made = await makeBackup()
    // Nobody may write it.
    chmodSync(made.file, 0o400)
    const { stdout, stderr, exitCode } = await made.restore()

    expect({ stdout, stderr, exitCode }).toEqual({
      stdout: `${made.database}\n`,
      stderr: `Restored ${statSync(made.file).size} bytes: users 1, tokens 1, plants 1000.\n`,
      exitCode: 0,
    })
    expect(readdirSync(made.data)).toEqual(['plantstore.db'])
    expect(statSync(made.database).mode & 0o777).toBe(0o600)
    expect(dump(made.database)).toEqual(made.content)
    expect(queryAll(made.database, "select name from sqlite_schema where name = 'backup_of'")).toEqual([])
    made.expectBackupUntouched()
  })

  test('refuses a database that an idle server has open, which goes on', async () => {
    using made = await makeBackup()
    const token = await putOther(made.database)
    await using server = await serve(made.database)
    const unforced = await made.restore()
    const forced = await made.restore('--force')
    const created = await server.request('POST', '/plants', { token, body: { id: 1, name: 'Fern' } })

    expect(unforced).toEqual(
      refusal(1, `${made.database} is there already: name another file, or replace it by --force.`),
    )
    expect(forced).toEqual(refusal(3, `The database ${made.database} is open in another process: end it.`))
    expect([created.status, await server.end()]).toEqual([200, 0])
    expect(await storedPlants(made.database)).toEqual([{ user_id: 1n, id: 1n, name: 'Fern' }])
  })

  test.each([
    ['has read it, and is idle', ['select count(*) from plants', 'begin']],
    ['is in the middle of a read', ['begin', 'select count(*) from plants']],
    ['is in the middle of a write', ['begin immediate', "update users set name = 'nobody'"]],
  ])('refuses a database that another program has open, which %s', async (_, statements) => {
    using made = await makeBackup()
    await putOther(made.database)
    await using holder = await holdTransaction(made.database, ...statements)
    const refused = await made.restore('--force')
    await holder.release()
    const restored = await made.restore('--force')

    expect(refused).toEqual(refusal(3, `The database ${made.database} is open in another process: end it.`))
    expect(restored.exitCode).toBe(0)
  })

  test.each([
    [
      'cut.db',
      'is truncated. Name another one: nothing was changed.',
      (path) => truncateSync(path, statSync(path).size - 1),
    ],
    ['schema.db', 'is damaged: ', (path) => overwrite(path, HEADER_BYTES, Buffer.alloc(HEADER_BYTES, 0xa5))],
    ['text.db', 'is not a database.', (path) => writeFileSync(path, 'Fern\n')],
    ['page.db', 'is damaged: ', (path) => damageTable(path, 'plants')],
    ['newer.db', 'has schema version 99', (path) => runSql(path, 'pragma user_version = 99')],
    [
      'trigger.db',
      'has a schema that another program has changed: trigger "evil". Name another one',
      (path) => runSql(path, 'create trigger evil after insert on plants begin select 1; end'),
    ],
    ['orphan.db', 'belongs to no user', (path) => runSql(path, 'delete from users')],
    [
      'time.db',
      'is damaged: token 1: expires_at_ms "8640000000000001" is not between -8640000000000000 and 8640000000000000. Name',
      (path) => runSql(path, 'update tokens set expires_at_ms = 8640000000000001'),
    ],
    [
      'name.db',
      String.raw`user 1: name "\u001b[2K\u000a" is not 1 to 64 characters of A-Z a-z 0-9 . _ @ -. Name another one`,
      (path) => runSql(path, "update users set name = char(27) || '[2K' || char(10)"),
    ],
    ['folder', 'is not a regular file', (path) => mkdirSync(path)],
    ['nowhere.db', 'There is no file', () => {}],
  ] as const satisfies readonly (readonly [string, string, (path: string) => void])[])(
    'refuses the backup %s in one line: %s',
    async (name, reason, spoil) => {
      using made = await makeBackup()
      await putOther(made.database)
      const before = snapshot(made.data)
      const file = join(made.file, '..', name)
      if (file.endsWith('.db') && name !== 'nowhere.db') cpSync(made.file, file)
      spoil(file)

      const answer = await runPlantstore(['restore', file, '--force', '--database', made.database])

      expect(answer).toEqual(refusalWith(3, reason))
      expect(snapshot(made.data)).toEqual(before)
    },
  )

  test('drops the tables and indexes of other programs, but not those of Litestream', async () => {
    using made = await makeBackup()
    runSql(
      made.file,
      'create table "notes\u202e" (text); insert into "notes\u202e" values (1)',
      'create virtual table texts using rtree (id, a, b)',
      'create index by_text on "notes\u202e" (text)',
      'create table _litestream_seq (id integer primary key, seq integer); insert into _litestream_seq values (1, 7)',
    )
    const { stderr, exitCode } = await made.restore()

    expect({ stderr, exitCode }).toEqual({
      stderr: `Left out the objects of other programs: table "notes\\u202e", table "texts", table "texts_rowid", table "texts_node", table "texts_parent", index "by_text".
Restored ${statSync(made.file).size} bytes: users 1, tokens 1, plants 1000.\n`,
      exitCode: 0,
    })
    expect(dump(made.database)).toMatchObject({ plants: made.content.plants, tokens: made.content.tokens })
    const tables = queryAll(made.database, `select name from sqlite_schema where type = 'table' order by name`)
    expect(tables.flat().join(' ')).toBe('_litestream_seq last_backup plants sqlite_sequence tokens users')
    expect(queryAll(made.database, 'select * from _litestream_seq')).toEqual([[1n, 7n]])
  })

  test('refuses a database in use as a backup, because the file may not be whole', async () => {
    using made = await makeBackup()
    const live = join(made.data, 'live.db')
    const token = await putOther(live)
    await using server = await serve(live)
    await server.request('POST', '/plants', { token, body: { id: 1, name: 'Fern' } })
    const refused = await runPlantstore(['restore', live, '--database', made.database])

    expect(refused).toEqual(refusal(3, `${live} is a database in use: make a backup of it by plantstore backup.`))
    expect(existsSync(made.database)).toBe(false)
  })

  test('refuses a name that has a WAL but no database, and names the WAL', async () => {
    using made = await makeBackup()
    writeFileSync(`${made.database}-wal`, 'left')

    expect(await made.restore('--force')).toEqual(
      refusalWith(3, `${made.database}-wal would be taken for a part of ${made.database}: `),
    )
    expect(readdirSync(made.data)).toEqual(['plantstore.db-wal'])
  })

  test.skipIf(lacks(MOUNTS))('leaves the database as it was without space', async () => {
    using made = await makeBackup()
    using disk = mountDisk(200_000)
    const database = join(disk.path, 'plantstore.db')
    // In a process that has ended, because deleted files take space while they are open.
    await runPlantstore(['token', 'create', '--user', 'other', '--database', database])
    disk.fillUp(20_000)
    const before = snapshot(disk.path)
    const { stderr, exitCode } = await runPlantstore(['restore', made.file, '--force', '--database', database])

    expect(exitCode).toBe(1)
    expect(stderr).toMatch(/there is no space/)
    expect(snapshot(disk.path)).toEqual(before)
  })

  test('refuses no file, stdin, and the database itself with 2', async () => {
    using made = await makeBackup()
    await putOther(made.database)
    const before = snapshot(made.data)
    const without = await runPlantstore(['restore', '--database', made.database])
    const itself = await runPlantstore(['restore', made.database, '--force', '--database', made.database])
    const stdin = await runPlantstore(['restore', '-', '--force', '--database', made.database], { stdin: 'Fern' })

    expect(without.exitCode).toBe(2)
    expect(stdin).toEqual(refusal(2, 'restore does not read stdin: save the backup as a file and name it.'))
    expect(itself).toEqual(refusal(2, `${made.database} is the backup itself: name another file.`))
    expect(snapshot(made.data)).toEqual(before)
  })
})
