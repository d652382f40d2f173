import { afterAll, describe, expect, test } from 'bun:test'
import { chmodSync, cpSync, existsSync, mkdirSync, readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { holdTransaction } from '../fault/foreign-transaction.ts'
import { damageTable, overwrite, queryAll, snapshot } from '../store/sqlite/files.ts'
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
    ['schema', (path: string) => overwrite(path, HEADER_BYTES, Buffer.alloc(HEADER_BYTES, 0xa5))],
    ['table', (path: string) => damageTable(path, 'plants')],
  ])('refuses a backup with a damaged %s in one line', async (_, damage) => {
    using made = await makeBackup()
    await putOther(made.database)
    const before = snapshot(made.data)
    damage(made.file)

    expect(await made.restore('--force')).toEqual(refusalWith(3, 'is damaged: '))
    expect(snapshot(made.data)).toEqual(before)
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
})
