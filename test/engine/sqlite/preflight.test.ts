import { Database } from 'bun:sqlite'
import { describe, expect, test } from 'bun:test'
import { cpSync, renameSync, rmSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { createUser } from '../../store/fixtures.ts'
import {
  copyAsKilled,
  makeDatabase,
  makeDatabaseFolder,
  openForTest,
  queryAll,
  refusalOf,
  runSql,
  runSqlAndDie,
  SHM,
  snapshot,
} from '../../store/sqlite/files.ts'

const NOTES = 'create table notes (text)'
const NO_DATABASE = /\.db is not a database\.$/
const FOREIGN = /\.db belongs to another application: /
const OURS = 'pragma application_id = 0x706c7374'
const SAYS_ITS_NAME = 'pragma application_id = 0x0f055112'
const TOO_NEW = /\.db has schema version 99, .* knows versions up to \d+: use the newer/
const LEFT = /-wal holds the latest writes of a database that is not/

/** Refused files, with the message of each. test/cli/transcripts/databases.txt has further ones. */
const REFUSED: readonly (readonly [name: string, make: (path: string) => unknown, message: RegExp])[] = [
  ['a text file of one byte', (path) => writeFileSync(path, 'F'), NO_DATABASE],
  ['a part of the first word', (path) => writeFileSync(path, 'SQLite for'), NO_DATABASE],
  ['of another application, in WAL mode', (path) => makeForeign(path, 'pragma journal_mode = wal'), FOREIGN],
  ['gone, with its WAL left', (path) => leaveWal(path, rmSync), LEFT],
  ['emptied, with its WAL left', (path) => leaveWal(path, truncateSync), LEFT],
  ['gone, with its journal left', (path) => leaveJournal(path, rmSync), /-journal would be taken for a part of /],
]

/** Refused databases with a WAL. SQLite creates the WAL-index beside a WAL to read it. */
const REFUSED_WITH_WAL: typeof REFUSED = [
  ['of another application', (path) => runSqlAndDie(path, NOTES), FOREIGN],
  ['of another application that says its name', (path) => runSqlAndDie(path, SAYS_ITS_NAME, NOTES), FOREIGN],
  ['of a newer schema', (path) => runSqlAndDie(path, NOTES, OURS, 'pragma user_version = 99'), TOO_NEW],
]

describe('a file that is not our database is refused in one line, and nothing is changed or added', () => {
  test.each([
    ...REFUSED.map((row) => [...row, ''] as const),
    ...REFUSED_WITH_WAL.map((row) => [...row, `plantstore.db${SHM}`] as const),
  ])('%s', async (_, make, message, allowed) => {
    using files = makeDatabaseFolder()
    await make(files.path)
    const before = snapshot(files.folder)

    const refusal = await refusalOf(files.path)

    expect(refusal).toMatch(message)
    expect(refusal).toContain(files.path)
    expect(refusal).not.toContain('\n')
    const { [allowed]: _allowed, ...after } = snapshot(files.folder)
    expect(after).toEqual(before)
  })
})

describe('a database that only looks foreign or damaged opens', () => {
  test('whose rest is in its WAL, after it was moved away from that, which is refused, and back', async () => {
    using killed = makeDatabaseFolder()
    await leaveKilled(killed.path)
    const elsewhere = `${killed.path}.moved`
    renameSync(killed.path, elsewhere)
    expect(await refusalOf(killed.path)).toContain(`move that back to ${killed.path}, or this file away.`)
    renameSync(elsewhere, killed.path)

    await using reopened = await openForTest(killed.path)

    expect(await reopened.store.listUsers()).toMatchObject([{ name: 'me', plants: 1, tokens: 1 }])
  })

  test('after a kill while the first start brought it into WAL mode, and takes back that write', async () => {
    using killed = makeDatabaseFolder()
    await makeDatabase(killed.path)
    const before = queryAll(killed.path, 'select * from plants')
    interruptWrite(killed.path)

    await using reopened = await openForTest(killed.path)

    expect(await reopened.store.checkIntegrity()).toEqual([])
    expect(queryAll(killed.path, 'select * from plants')).toEqual(before)
  })

  test.each<[string, (path: string) => unknown]>([
    ['is empty', (path) => writeFileSync(path, '')],
    ['was emptied, with its journal left', (path) => leaveJournal(path, truncateSync)],
    ['is a link to a link to nothing', linkTwice],
    ['has no tables', (path) => runSql(path, 'pragma journal_mode = wal')],
  ])('if it %s', async (_, make) => {
    using files = makeDatabaseFolder()
    await make(files.path)

    await using opened = await openForTest(files.path)

    expect(await opened.store.listTokens()).toEqual([])
    expect(await opened.store.checkIntegrity()).toEqual([])
    expect(await createUser(opened.store, 'me')).toBe(1)
  })
})

/** Makes a database as a killed server leaves it: its plant is in the WAL. */
async function leaveKilled(path: string): Promise<void> {
  using files = makeDatabaseFolder()
  await using opened = await openForTest(files.path)
  const user = await createUser(opened.store, 'me')
  await opened.store.createPlant(user, { id: 1n, name: 'Fern' })
  copyAsKilled(files.path, path)
}

/** Leaves a database that is not in WAL mode as a kill does in the middle of a write: its journal has what was there before. */
function interruptWrite(path: string): void {
  using files = makeDatabaseFolder()
  using db = new Database(path)
  for (const statement of ['pragma journal_mode = delete', 'pragma cache_size = 1', 'begin', 'delete from plants'])
    db.run(statement)
  for (const end of ['', '-journal']) cpSync(path + end, files.path + end)
  db.run('rollback')
  db.close(true)
  for (const end of ['', '-journal']) renameSync(files.path + end, path + end)
}

/** Makes a database with a WAL as a killed program leaves it, and takes the database away. */
function leaveWal(path: string, take: (path: string) => void): void {
  runSqlAndDie(path, NOTES)
  take(path)
}

/** Makes a database with a journal as a kill in the middle of a write leaves it, and takes the database away. */
async function leaveJournal(path: string, take: (path: string) => void): Promise<void> {
  await makeDatabase(path)
  interruptWrite(path)
  take(path)
}

function linkTwice(path: string): void {
  symlinkSync('second', path)
  symlinkSync('./nothing.db', join(dirname(path), 'second'))
}

const makeForeign = (path: string, ...statements: readonly string[]): void =>
  runSql(path, ...statements, NOTES, "insert into notes values ('hello')")
