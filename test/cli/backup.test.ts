import { describe, expect, test } from 'bun:test'
import { copyFileSync, mkdirSync, readdirSync, statSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { holdTransaction } from '../fault/foreign-transaction.ts'
import { damageTable } from '../store/sqlite/files.ts'
import { MOUNTS, mountDisk } from '../support/disk.ts'
import { dump } from '../support/dump.ts'
import { runPlantstore, withUmask } from '../support/executable.ts'
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
