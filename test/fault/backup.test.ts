import { afterAll, describe, expect, test } from 'bun:test'
import { existsSync, mkdirSync, readdirSync, readFileSync, utimesSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { dump } from '../support/dump.ts'
import { COMMAND, runPlantstore } from '../support/executable.ts'
import { makeFolder } from '../support/folder.ts'
import { addPlants } from '../support/many-plants.ts'
import { runProgram, startProgram } from '../support/program.ts'
import { lacks } from '../support/requirement.ts'
import { STRACE } from '../support/strace.ts'
import { createTokenIn } from '../support/tokens.ts'
import { until } from '../support/until.ts'
import { backUpUnderLoad } from './backup-moment.ts'
import { largePlantOf, startHistory } from './history.ts'
import { losePower } from './power-loss/losses.ts'
import { DATABASE, recordCommand, recordFolder } from './power-loss/recording.ts'
import { ROUNDS_TIMEOUT_MS, rounds, testRounds } from './rounds.ts'
import { killAt, pickCall, traceCalls } from './system-calls.ts'
import { expectRecovery, makeTestDatabase } from './test-database.ts'

/** Successes before a backup begins, so that it has something to hold. */
const ENOUGH = 500
/** More plants than a backup copies at once, so that a signal comes in the middle. */
const MANY_PLANTS = 400_000
const SUBSETS = rounds(60, 300)
const KILLED_AT = ['pwrite64', 'fsync', 'link'] as const
const NEW_DATABASE = resolve(import.meta.dir, '../../src/store/sqlite/tools/new-database.ts')
const WITHOUT_LINKS = { calls: ['link'], fault: 'error=EPERM', when: '1+' } as const
let kills = 0
afterAll(() => console.log(`killed ${kills} backups`))

describe('a backup', () => {
  testRounds(
    'under load is the database at one moment, and lets writes go on',
    { short: 2, long: 100 },
    async (random) => {
      using db = await makeTestDatabase({ random, history: startHistory(1, largePlantOf) })
      const { history } = db
      const backup = join(db.folder, 'backup.db')
      await using server = await db.serve()
      const load = db.startLoad(server)
      await load.acknowledged(ENOUGH)
      const made = await backUpUnderLoad(db.database, backup, history)
      const { acknowledged } = history.counts()
      await until('the load goes on', () => history.counts().acknowledged > acknowledged)
      await load.stop()

      expect(history.refusals()).toEqual([])
      made.requireOneMoment(backup)
      expect(await server.end()).toBe(0)
      await expectRecovery(db)
    },
  )

  testRounds(
    'that is killed leaves no file of its name, and the next backup removes what is left',
    { short: 4, long: 60, needs: [STRACE] },
    async (random) => {
      using made = await makeDatabase(3000)
      const { database, backups, backup } = made
      const before = dump(database)
      using whole = traceCalls()
      await backUp(database, `${backup}-0`, whole.under)
      const { calls } = await whole.seen()
      // The calls after the link come when the backup has its name.
      const untilNamed = calls.slice(0, 1 + calls.findIndex(({ name }) => name === 'link'))
      const { name, when } = pickCall(untilNamed, random, KILLED_AT)
      using trace = traceCalls({ inject: killAt(name, when) })
      await backUp(database, backup, trace.under)
      expect((await trace.seen()).calls.at(-1)).toMatchObject({ name, isLast: true })
      expect(existsSync(backup)).toBe(false)
      kills++
      for (const file of readdirSync(backups)) utimesSync(join(backups, file), 0, 0)

      const { exitCode } = await backUp(database, backup)

      expect(exitCode).toBe(0)
      expect(dump(backup)).toEqual(before)
      expect(readdirSync(backups).filter((each) => each.includes('partial'))).toEqual([])
      expect(dump(database)).toEqual(before)
    },
  )

  test.skipIf(lacks(STRACE))('is synced before it gets its name, and its folder after that', async () => {
    using made = await makeDatabase()
    const { database, backups, backup } = made
    using trace = traceCalls()
    await backUp(database, backup, trace.under)

    const { calls } = await trace.seen()
    const steps = calls
      .filter(({ name, path }) => name !== 'pread64' && path.startsWith(backups))
      .map(({ name, path }) => `${name} ${path.slice(backups.length).replace(/\.partial-.*/, '.partial')}`)
    const written = steps.findLastIndex((step) => step.startsWith('pwrite64'))
    expect(steps.slice(written + 1)).toEqual([
      'fsync /plants.db.partial',
      'link /plants.db.partial',
      'unlink /plants.db.partial',
      'fsync ',
    ])
  })

  testRounds(
    'leaves no file or the whole one wherever the power is lost, and the whole one once it has ended',
    { short: 1, long: 5, needs: [STRACE] },
    async (random) => {
      const name = 'plants.db'
      const { events } = await recordFolder(async (path, trace) => {
        const database = join(path, DATABASE)
        await recordCommand(trace, database, 'token', 'create', '--user', 'me')
        await recordCommand(trace, database, 'backup', join(path, name))
      })
      const cuts = events.map((_, index) => index + 1)
      const states = [...losePower(events, cuts, SUBSETS, random)].map((loss) => {
        const bytes = loss.files.get(name)
        const state = bytes === undefined ? 'none' : Bun.SHA256.hash(bytes, 'hex')
        return { state, isOver: loss.cut === events.length }
      })
      const last = states.at(-1)?.state ?? ''

      expect([...new Set(states.map(({ state }) => state))]).toEqual(['none', last])
      expect(states.filter(({ state, isOver }) => isOver && state !== last)).toEqual([])
      console.log(`${cuts.length} cuts`)
    },
  )

  test.skipIf(lacks(STRACE))('is made on a file system without links', async () => {
    using made = await makeDatabase()
    const { database, backups, backup } = made
    using trace = traceCalls({ inject: WITHOUT_LINKS })
    const { exitCode } = await backUp(database, backup, trace.under)

    expect((await trace.seen()).calls.filter(({ isInjected }) => isInjected)).toHaveLength(1)
    expect(exitCode).toBe(0)
    expect(dump(backup)).toEqual(dump(database))
    expect(readdirSync(backups)).toEqual(['plants.db'])
  })

  test.skipIf(lacks(STRACE))(
    'never replaces a file that has just appeared on a file system without links',
    async () => {
      using folder = makeFolder()
      const [made, taken] = [join(folder.path, 'made'), join(folder.path, 'taken')]
      for (const path of [made, taken]) writeFileSync(path, path)
      using trace = traceCalls({ inject: WITHOUT_LINKS })
      const program = `const { renameToNew } = await import(process.argv[1])
      try { renameToNew(process.argv[2], process.argv[3]) } catch ({ code }) { console.log(code) }`
      const { stdout } = await runProgram([...trace.under, process.execPath, '-e', program, NEW_DATABASE, made, taken])

      expect((await trace.seen()).calls.filter(({ isInjected }) => isInjected)).toHaveLength(1)
      expect(stdout).toBe('EEXIST\n')
      expect([made, taken].map((path) => readFileSync(path, 'utf8'))).toEqual([made, taken])
    },
  )

  test.each(['SIGTERM', 'SIGINT'] as const)(
    'that %s stops says so and leaves nothing',
    async (signal) => {
      using made = await makeDatabase(MANY_PLANTS)
      const { database, backups, backup } = made
      const { child, ended } = startProgram([...COMMAND, 'backup', backup, '--database', database])
      await until('the backup has begun', () =>
        readdirSync(backups).some((name) => Bun.file(join(backups, name)).size > 0),
      )
      child.kill(signal)

      expect(await ended).toEqual({
        stdout: '',
        stderr: `Stopped by ${signal}: nothing was made. Run the same command again.\n`,
        exitCode: signal === 'SIGINT' ? 130 : 143,
      })
      expect(readdirSync(backups)).toEqual([])
    },
    ROUNDS_TIMEOUT_MS,
  )
})

/** A database with some plants, and the path of a backup in a folder of its own. */
async function makeDatabase(plants = 0) {
  const folder = makeFolder()
  const [database, backups] = [join(folder.path, 'plantstore.db'), join(folder.path, 'backups')]
  await createTokenIn(database)
  addPlants(database, plants)
  mkdirSync(backups)
  return { database, backups, backup: join(backups, 'plants.db'), [Symbol.dispose]: folder[Symbol.dispose] }
}

const backUp = (database: string, backup: string, under: readonly string[] = []) =>
  runPlantstore(['backup', backup, '--database', database], { under })
