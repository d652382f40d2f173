import { describe, expect, test } from 'bun:test'
import { copyFileSync, linkSync, mkdirSync, readdirSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { holdTransaction } from '../fault/foreign-transaction.ts'
import { damageTable, queryAll, snapshot } from '../store/sqlite/files.ts'
import { MOUNTS, mountDisk } from '../support/disk.ts'
import { dump } from '../support/dump.ts'
import { runPlantstore, serve, withUmask } from '../support/executable.ts'
import { makeFolder } from '../support/folder.ts'
import { addPlants } from '../support/many-plants.ts'
import { lacks } from '../support/requirement.ts'
import { createTokenIn } from '../support/tokens.ts'

/** More than are copied at once. */
const MANY_PLANTS = 50_000
const NAME = /^plantstore-\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d\.\d{3}Z\.db$/

/** A folder with a database of some users, tokens and plants, and a place for backups. */
async function makeDatabase(plants = 10) {
  const folder = makeFolder()
  const database = join(folder.path, 'plantstore.db')
  for (const user of ['me', 'me', 'you']) await createTokenIn(database, user)
  addPlants(database, plants)
  const backups = join(folder.path, 'backups')
  mkdirSync(backups)
  const backup = (...args: readonly string[]) => runPlantstore(['backup', ...args, '--database', database])
  return {
    folder: folder.path,
    database,
    backups,
    file: join(backups, 'plants.db'),
    backup,
    [Symbol.dispose]: folder[Symbol.dispose],
  }
}

/** The paths of the files in a folder, in the order of their names. */
const filesOf = (folder: string): string[] =>
  readdirSync(folder)
    .sort()
    .map((name) => join(folder, name))

/** What a backup has told after its counts, which lines about its progress precede on a slow machine. */
const linesAfterCounts = (stderr = ''): string[] => stderr.replace(/^.*Backed up [^\n]+\n/s, '').split('\n')

const bytesOf = (path: string): number => statSync(path).size

describe.concurrent('backup FILE', () => {
  test('makes a file of all that the database holds, for its owner alone, and prints its path', async () => {
    using made = await makeDatabase(MANY_PLANTS)
    const before = snapshot(made.folder)
    const { stdout, stderr, exitCode } = await runPlantstore(['backup', made.file, '--database', made.database], {
      under: withUmask('0'),
    })

    expect({ stdout, stderr, exitCode }).toEqual({
      stdout: `${made.file}\n`,
      stderr: `Backed up ${bytesOf(made.file)} bytes: users 2, tokens 3, plants ${2 * MANY_PLANTS}.\n`,
      exitCode: 0,
    })
    expect(snapshot(made.folder)).toEqual(before)
    expect(readdirSync(made.backups)).toEqual(['plants.db'])
    expect(statSync(made.file).mode & 0o777).toBe(0o600)
    expect(dump(made.file)).toEqual(dump(made.database))
  })

  test('says with --json where the backup is and what it holds, as restore does', async () => {
    using made = await makeDatabase()
    const restored = join(made.folder, 'restored.db')
    const answers = [
      await made.backup(made.file, '--json'),
      await runPlantstore(['restore', made.file, '--json', '--database', restored]),
    ]

    const holds = { users: 2, tokens: 3, plants: 20 }
    expect(answers.map(({ stdout, exitCode }) => [JSON.parse(stdout), exitCode])).toEqual([
      [{ path: made.file, bytes: bytesOf(made.file), ...holds }, 0],
      [{ path: restored, bytes: bytesOf(restored), ...holds }, 0],
    ])
  })

  test('makes one that a server takes as it is', async () => {
    using made = await makeDatabase()
    const token = await createTokenIn(made.database)
    await made.backup(made.file)
    await using server = await serve(made.file)
    const plants = await (await server.request('GET', '/plants', { token })).json()

    expect(plants).toHaveLength(10)
    expect(await server.end()).toBe(0)
  })

  test('records the path of its database, which is its own for a backup that a server uses', async () => {
    using made = await makeDatabase()
    const second = join(made.backups, 'second.db')
    await made.backup(made.file)
    await using _server = await serve(made.file)
    await runPlantstore(['backup', second, '--database', made.file])

    expect([made.file, second].map((path) => queryAll(path, 'select * from backup_of'))).toEqual([
      [[made.database]],
      [[made.file]],
    ])
  })

  test('of what a killed server has left in the WAL has that, too', async () => {
    using made = await makeDatabase()
    const token = await createTokenIn(made.database)
    await using server = await serve(made.database)
    await server.request('POST', '/plants', { token, body: { id: 77, name: 'Fern' } })
    await server.kill()
    expect(bytesOf(`${made.database}-wal`)).toBeGreaterThan(0)
    await made.backup(made.file)

    expect(dump(made.file).plants).toContainEqual([1n, 77n, 'Fern', null])
  })

  test('refuses a file that is there, and replaces it with --force', async () => {
    using made = await makeDatabase()
    await made.backup(made.file)
    const before = snapshot(made.backups)
    await createTokenIn(made.database, 'they')
    const refused = await made.backup(made.file)
    const after = snapshot(made.backups)
    const forced = await made.backup(made.file, '--force')

    expect(refused).toEqual({
      stdout: '',
      stderr: `plantstore: ${made.file} is there already: name another file, or repeat it with --force.\n`,
      exitCode: 1,
    })
    expect(after).toEqual(before)
    expect(forced).toMatchObject({ stdout: `${made.file}\n`, exitCode: 0 })
    expect(dump(made.file)).toEqual(dump(made.database))
    expect(readdirSync(made.backups)).toEqual(['plants.db'])
  })

  test('never replaces the database itself, by whatever name, nor what is no database of ours', async () => {
    using made = await makeDatabase()
    const [link, symlink, text] = ['link.db', 'symlink.db', 'text.db'].map((name) => join(made.backups, name))
    linkSync(made.database, link ?? '')
    symlinkSync(made.database, symlink ?? '')
    writeFileSync(text ?? '', 'Fern\n')
    const before = snapshot(made.backups)

    for (const [file, reason] of [
      [made.database, 'is the database itself'],
      [link, 'is the database itself'],
      [symlink, 'is the database itself'],
      [text, 'is no backup, and stays as it is'],
      [made.backups, 'is not a regular file'],
    ]) {
      const { stdout, stderr, exitCode } = await made.backup(file ?? '', '--force')
      expect({ stdout, exitCode }).toEqual({ stdout: '', exitCode: 1 })
      expect(stderr).toMatch(/^[^\n]+\n$/)
      expect(stderr).toContain(reason ?? '')
    }
    expect(snapshot(made.backups)).toEqual(before)
  })

  test('never replaces a database that a server has open', async () => {
    using made = await makeDatabase()
    const other = join(made.backups, 'other.db')
    await createTokenIn(other)
    await using _server = await serve(other)
    const { stderr, exitCode } = await made.backup(other, '--force')

    expect(exitCode).toBe(3)
    expect(stderr).toBe(`plantstore: The database ${other} is open in another process: end it.\n`)
    expect(dump(other).users).toHaveLength(1)
  })

  test('refuses a name beside which a WAL is left, that would be taken for a part of it', async () => {
    using made = await makeDatabase()
    writeFileSync(`${made.file}-wal`, 'left')
    const { stderr, exitCode } = await made.backup(made.file)

    expect({ stderr, exitCode }).toEqual({
      stderr: `plantstore: ${made.file}-wal is there without its database: move it away.\n`,
      exitCode: 1,
    })
  })

  test('of a damaged database leaves nothing, and exits with 3', async () => {
    using made = await makeDatabase(1000)
    damageTable(made.database, 'plants')
    const { stdout, stderr, exitCode } = await made.backup(made.file)

    expect({ stdout, exitCode }).toEqual({ stdout: '', exitCode: 3 })
    expect(stderr).toMatch(/^plantstore: The database [^\n]+ is damaged: [^\n]+\n$/)
    expect(readdirSync(made.backups)).toEqual([])
  })

  test.skipIf(lacks(MOUNTS))('without space leaves nothing, and says so', async () => {
    using made = await makeDatabase(10_000)
    using disk = mountDisk(100_000)
    const { stdout, stderr, exitCode } = await made.backup(join(disk.path, 'plants.db'))

    expect({ stdout, exitCode }).toEqual({ stdout: '', exitCode: 1 })
    expect(stderr).toMatch(/^plantstore: [^\n]+plants\.db cannot be made: there is no space: make room\.\n$/)
    expect(readdirSync(disk.path)).toEqual([])
  })

  test.each([
    [[], 'Say where to'],
    [['a.db', '--dir', '.'], 'Say which'],
    [['a.db', '--keep', '3'], '--keep'],
    [['--keep', '3'], '--keep'],
    [['--dir', '.', '--force'], '--force'],
    [['-', '--force'], '--force'],
    [['-', '--json'], '--json'],
    [['-', '--dir', '.'], 'Say which'],
    [['-', '--keep', '3'], '--keep'],
    [[''], 'Say which'],
  ])('%j is misused', async (args, reason) => {
    using folder = makeFolder()
    const { stdout, stderr, exitCode } = await runPlantstore(['backup', ...args], { cwd: folder.path })

    expect({ stdout, exitCode }).toEqual({ stdout: '', exitCode: 2 })
    expect(stderr).toMatch(/^[^\n]+\n$/)
    expect(stderr).toContain(reason)
    expect(readdirSync(folder.path)).toEqual([])
  })

  test('refuses where there is no database, or no directory', async () => {
    using made = await makeDatabase()
    const nowhere = join(made.folder, 'nowhere')
    const answers = await Promise.all([
      runPlantstore(['backup', made.file, '--database', nowhere]),
      made.backup(join(nowhere, 'plants.db')),
      made.backup('--dir', nowhere),
    ])

    expect(answers.map(({ stderr, exitCode }) => [exitCode, stderr])).toEqual([
      [3, `plantstore: There is no database ${nowhere}: name the one that the server uses.\n`],
      [1, `plantstore: There is no directory ${nowhere}: create it.\n`],
      [1, `plantstore: There is no directory ${nowhere}: create it.\n`],
    ])
  })
})

describe.concurrent('backup --dir', () => {
  test('names each backup by the time, and keeps the latest ones alone', async () => {
    using made = await makeDatabase()
    const others = ['plantstore-2020-01-01T00-00-00.000Z.db.txt', 'plants-2020-01-01T00-00-00.000Z.db', 'plantstore.db']
    for (const name of others) writeFileSync(join(made.backups, name), '')
    const names: string[] = []
    const deleted: string[] = []
    for (let run = 0; run < 4; run++) {
      const { stdout, stderr } = await made.backup('--dir', made.backups, '--keep', '2')
      names.push(stdout.trim().slice(made.backups.length + 1))
      deleted.push(...[...stderr.matchAll(/^Deleted (.+)\.$/gm)].map(([, name = '']) => name))
    }

    for (const name of names) expect(name).toMatch(NAME)
    expect(names).toEqual(names.toSorted())
    expect(readdirSync(made.backups).sort()).toEqual([...others, ...names.slice(-2)].sort())
    expect(deleted).toEqual(names.slice(0, 2))
  })

  test('without --keep deletes nothing', async () => {
    using made = await makeDatabase()
    for (let run = 0; run < 3; run++) await made.backup('--dir', made.backups)

    expect(readdirSync(made.backups)).toHaveLength(3)
  })

  test('with --keep deletes nothing beside a backup of another database, and exits with 2', async () => {
    using made = await makeDatabase()
    using other = await makeDatabase()
    const runs = [
      await made.backup('--dir', made.backups),
      await other.backup('--dir', made.backups),
      await made.backup('--dir', made.backups, '--keep', '1'),
    ]
    const paths = runs.map(({ stdout }) => stdout.trim())

    expect(runs[2]).toMatchObject({ exitCode: 2, stdout: expect.stringMatching(/^[^\n]+\.db\n$/) })
    expect(linesAfterCounts(runs[2]?.stderr)).toEqual([
      `plantstore: No old backup was deleted: ${made.backups} also holds ${basename(paths[1] ?? '')}, a backup of ${other.database}. Each database needs a folder of its own: name another one in --dir, or move that file away.`,
      '',
    ])
    expect(filesOf(made.backups)).toEqual(paths)
    expect(dump(paths[2] ?? '')).toEqual(dump(made.database))
  })

  test('with --keep takes a database that is named by a link for the same one', async () => {
    using made = await makeDatabase()
    const link = join(made.folder, 'plants')
    symlinkSync(made.folder, link)
    await made.backup('--dir', made.backups)
    const args = ['--dir', made.backups, '--keep', '1', '--database', join(link, 'plantstore.db')]
    const { stdout, exitCode } = await runPlantstore(['backup', ...args])

    expect(exitCode).toBe(0)
    expect(filesOf(made.backups)).toEqual([stdout.trim()])
  })

  test('with --keep neither counts nor deletes a backup of the future, and warns of it', async () => {
    using made = await makeDatabase()
    const future = join(made.backups, 'plantstore-2999-01-01T00-00-00.000Z.db')
    await made.backup(future)
    const first = await made.backup('--dir', made.backups)
    const { stdout, stderr, exitCode } = await made.backup('--dir', made.backups, '--keep', '1')

    expect(exitCode).toBe(0)
    expect(linesAfterCounts(stderr)).toEqual([
      `Warning: ${basename(future)} is dated in the future: it is neither counted nor deleted.`,
      `Deleted ${basename(first.stdout.trim())}.`,
      '',
    ])
    expect(filesOf(made.backups)).toEqual([stdout.trim(), future])
  })

  test('with --keep neither counts nor deletes a file that does not say it is a backup, and warns of it', async () => {
    using made = await makeDatabase()
    const copied = join(made.backups, 'plantstore-2020-01-01T00-00-00.000Z.db')
    copyFileSync(made.database, copied)
    const { stdout, stderr, exitCode } = await made.backup('--dir', made.backups, '--keep', '1')

    expect(exitCode).toBe(0)
    expect(linesAfterCounts(stderr)).toEqual([
      `Warning: ${basename(copied)} does not say which database it is a backup of: it is neither counted nor deleted.`,
      '',
    ])
    expect(filesOf(made.backups)).toEqual([copied, stdout.trim()])
  })

  test('removes what killed ones have left, and leaves what is being made and what it has not named', async () => {
    using made = await makeDatabase()
    const [left, taken, foreign] = [crypto.randomUUID(), crypto.randomUUID(), 'mine'].map((end) =>
      join(made.backups, `plantstore-2020-01-01T00-00-00.000Z.db.partial-${end}`),
    )
    for (const path of [left, foreign]) writeFileSync(path ?? '', 'half a page')
    await createTokenIn(taken ?? '')
    await using _maker = await holdTransaction(taken ?? '', 'pragma journal_mode = delete', 'begin exclusive')
    const { stdout } = await made.backup('--dir', made.backups)

    expect(
      readdirSync(made.backups)
        .map((name) => join(made.backups, name))
        .sort(),
    ).toEqual([taken ?? '', foreign ?? '', stdout.trim()].sort())
  })
})
