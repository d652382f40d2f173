import { describe, expect, test } from 'bun:test'
import {
  copyFileSync,
  linkSync,
  mkdirSync,
  readdirSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { basename, join } from 'node:path'
import { holdTransaction } from '../fault/foreign-transaction.ts'
import { damageTable, queryAll, snapshot } from '../store/sqlite/files.ts'
import { MOUNTS, mountDisk } from '../support/disk.ts'
import { dump } from '../support/dump.ts'
import { runPlantstore, withUmask } from '../support/executable.ts'
import { makeFolder } from '../support/folder.ts'
import { lacks } from '../support/requirement.ts'
import { createTokenIn } from '../support/tokens.ts'
import { refusal, refusalWith } from './support/answers.ts'
import { fillDatabase } from './support/database.ts'

/** More rows than one batch. */
const MANY_PLANTS = 50_000
const NAME = /^plantstore-\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d\.\d{3}Z\.db$/

/** A filled database and a folder for backups. `backup` makes a backup of the database. */
async function makeDatabase(plants = 10) {
  const made = await fillDatabase(plants)
  const backups = join(made.folder, 'backups')
  mkdirSync(backups)
  const backup = (...args: readonly string[]) => made.run('backup', ...args)
  return { ...made, backups, file: join(backups, 'plants.db'), backup }
}

type Made = Awaited<ReturnType<typeof makeDatabase>>

/** The paths of the files in a folder, in the order of their names. */
const filesOf = (folder: string): string[] =>
  readdirSync(folder)
    .sort()
    .map((name) => join(folder, name))

/** The lines of stderr after the counts. On a slow machine, lines about the progress come before them. */
const linesAfterCounts = (stderr = ''): string[] => stderr.replace(/^.*Backed up [^\n]+\n/s, '').split('\n')

const bytesOf = (path: string): number => statSync(path).size

describe.concurrent('backup FILE', () => {
  test('makes a file of all rows that only its owner may read, and prints its path', async () => {
    using made = await makeDatabase(MANY_PLANTS)
    const [before, content] = [readdirSync(made.folder), dump(made.database)]
    const { stdout, stderr, exitCode } = await runPlantstore(['backup', made.file, '--database', made.database], {
      under: withUmask('0'),
    })

    expect({ stdout, stderr, exitCode }).toEqual({
      stdout: `${made.file}\n`,
      stderr: expect.stringContaining(
        `Backed up ${bytesOf(made.file)} bytes: users 2, tokens 3, plants ${2 * MANY_PLANTS}.\n`,
      ),
      exitCode: 0,
    })
    expect([readdirSync(made.folder), dump(made.database)]).toEqual([before, content])
    expect(readdirSync(made.backups)).toEqual(['plants.db'])
    expect(statSync(made.file).mode & 0o777).toBe(0o600)
    expect(dump(made.file)).toEqual(dump(made.database))
  })

  test('prints with --json the path and the counts, as restore does', async () => {
    using made = await makeDatabase()
    const restored = join(made.folder, 'restored.db')
    const answers = [
      await made.backup(made.file, '--json'),
      await runPlantstore(['restore', made.file, '--json', '--database', restored]),
    ]

    const holds = { users: 2, tokens: 3, plants: 20 }
    expect(answers.map(({ stdout, exitCode }) => [JSON.parse(stdout), exitCode])).toEqual([
      [{ path: made.file, bytes: bytesOf(made.file), ...holds }, 0],
      [{ path: restored, bytes: bytesOf(made.file), ...holds }, 0],
    ])
  })

  test('records the path of its database, also if that is a backup', async () => {
    using made = await makeDatabase()
    const second = join(made.backups, 'second.db')
    await made.backup(made.file)
    await runPlantstore(['backup', second, '--database', made.file])

    expect(queryAll(made.file, 'select * from backup_of')).toEqual([[made.database]])
    expect(queryAll(second, 'select * from backup_of')).toEqual([[made.file]])
  })

  test('refuses to replace a file, and replaces it with --force', async () => {
    using made = await makeDatabase()
    await made.backup(made.file)
    const before = snapshot(made.backups)
    await createTokenIn(made.database, 'they')
    const refused = await made.backup(made.file)
    const after = snapshot(made.backups)
    const forced = await made.backup(made.file, '--force')

    expect(refused).toEqual(refusal(1, `${made.file} is there already: name another file, or replace it by --force.`))
    expect(after).toEqual(before)
    expect(forced).toMatchObject({ stdout: `${made.file}\n`, exitCode: 0 })
    expect(dump(made.file)).toEqual(dump(made.database))
    expect(readdirSync(made.backups)).toEqual(['plants.db'])
  })

  test.each([
    ['the database', 2, 'is the database itself', ({ database }) => database],
    ['a hard link to the database', 2, 'is the database itself', ({ database, file }) => linkSync(database, file)],
    ['a symbolic link to the database', 2, 'is the database itself', (made) => symlinkSync(made.database, made.file)],
    ['a text', 3, 'is not a database', ({ file }) => writeFileSync(file, 'Fern\n')],
    ['a folder', 3, 'is a directory', ({ file }) => mkdirSync(file)],
  ] as const satisfies readonly (readonly [string, number, string, (made: Made) => unknown])[])(
    'never replaces %s, even with --force',
    async (_, exitCode, reason, place) => {
      using made = await makeDatabase()
      const placed = place(made)
      const file = typeof placed === 'string' ? placed : made.file
      const before = snapshot(made.backups)

      expect(await made.backup(file, '--force')).toEqual(refusalWith(exitCode, reason))
      expect(snapshot(made.backups)).toEqual(before)
    },
  )

  test('leaves nothing of a backup of a damaged database, and exits with 3', async () => {
    using made = await makeDatabase(1000)
    damageTable(made.database, 'plants')

    expect(await made.backup(made.file)).toEqual(refusalWith(3, ' is damaged: '))
    expect(readdirSync(made.backups)).toEqual([])
  })

  test.skipIf(lacks(MOUNTS))('leaves nothing without space, and says so', async () => {
    using made = await makeDatabase(10_000)
    using disk = mountDisk(100_000)
    const file = join(disk.path, 'plants.db')

    expect(await made.backup(file)).toEqual(refusal(1, `${file} cannot be made: there is no space: make room.`))
    expect(readdirSync(disk.path)).toEqual([])
  })

  test.each([
    ['', 'Say where to'],
    ['a.db --dir .', 'Say where to'],
    ['a.db --keep 3', '--keep'],
    ['--dir . --force', '--force'],
    ['- --force', '--force'],
    ['- --json', '--json'],
    [' ', 'Say where to'],
  ])('refuses the arguments "%s" with 2', async (args, reason) => {
    using folder = makeFolder()
    const command = ['backup', ...(args === ' ' ? [''] : args.split(' ').filter((word) => word !== ''))]

    expect(await runPlantstore(command, { cwd: folder.path })).toEqual(refusalWith(2, reason))
    expect(readdirSync(folder.path)).toEqual([])
  })

  test('refuses a missing database and a missing directory', async () => {
    using made = await makeDatabase()
    const nowhere = join(made.folder, 'nowhere')
    const answers = await Promise.all([
      runPlantstore(['backup', made.file, '--database', nowhere]),
      made.backup(join(nowhere, 'plants.db')),
      made.backup('--dir', nowhere),
    ])

    expect(answers).toEqual([
      refusal(3, `There is no database ${nowhere}: name the one that the server uses.`),
      refusal(3, `The directory ${nowhere} does not exist: create it.`),
      refusal(3, `The directory ${nowhere} does not exist: create it.`),
    ])
  })
})

describe.concurrent('backup --dir', () => {
  test('names each backup by the time, and keeps the latest ones with --keep', async () => {
    using made = await makeDatabase()
    const others = ['plantstore-2020-01-01T00-00-00.000Z.db.txt', 'plants-2020-01-01T00-00-00.000Z.db', 'plantstore.db']
    for (const name of others) writeFileSync(join(made.backups, name), '')
    const names: string[] = []
    const deleted: string[] = []
    // The first two runs delete nothing, because they have no --keep.
    for (const keep of [[], [], ['--keep', '2'], ['--keep', '2']]) {
      const { stdout, stderr } = await made.backup('--dir', made.backups, ...keep)
      names.push(stdout.trim().slice(made.backups.length + 1))
      deleted.push(...[...stderr.matchAll(/^Deleted (.+)\.$/gm)].map(([, name = '']) => name))
    }

    for (const name of names) expect(name).toMatch(NAME)
    expect(names).toEqual(names.toSorted())
    expect(readdirSync(made.backups).sort()).toEqual([...others, ...names.slice(-2)].sort())
    expect(deleted).toEqual(names.slice(0, 2))
  })

  test('deletes nothing beside a backup of another database, and exits with 2', async () => {
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

  test('neither counts nor deletes a file from the future, with a warning, or one without the record of a backup', async () => {
    using made = await makeDatabase()
    // The same database, by a link.
    const link = join(made.folder, 'plants')
    symlinkSync(made.folder, link)
    const [copied = '', future = ''] = ['2020', '2999'].map((year) =>
      join(made.backups, `plantstore-${year}-01-01T00-00-00.000Z.db`),
    )
    copyFileSync(made.database, copied)
    await made.backup(future)
    const first = await made.backup('--dir', made.backups)
    const args = ['--dir', made.backups, '--keep', '1', '--database', join(link, 'plantstore.db')]
    const { stdout, stderr, exitCode } = await runPlantstore(['backup', ...args])

    expect(exitCode).toBe(0)
    expect(linesAfterCounts(stderr).toSorted()).toEqual([
      '',
      `Deleted ${basename(first.stdout.trim())}.`,
      `Warning: ${basename(future)} is dated in the future: it is neither counted nor deleted.`,
    ])
    expect(filesOf(made.backups)).toEqual([copied, stdout.trim(), future])
  })

  test('removes unfinished files of killed backups, and leaves those of others', async () => {
    using made = await makeDatabase()
    const ends = [crypto.randomUUID(), crypto.randomUUID(), crypto.randomUUID(), 'mine']
    const [left = '', taken = '', young = '', foreign = ''] = ends.map((end) =>
      join(made.backups, `plantstore-2020-01-01T00-00-00.000Z.db.partial-${end}`),
    )
    for (const path of [left, foreign]) writeFileSync(path, 'half a page')
    await createTokenIn(taken)
    for (const path of [left, taken, foreign]) utimesSync(path, 0, 0)
    await using _maker = await holdTransaction(taken, 'pragma journal_mode = delete', 'begin exclusive')
    // Another backup has just made it, and not locked it yet.
    writeFileSync(young, '')
    const { stdout } = await made.backup('--dir', made.backups)

    expect(filesOf(made.backups)).toEqual([taken, young, foreign, stdout.trim()].sort())
  })
})
