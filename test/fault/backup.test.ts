import { afterAll, describe, expect, test } from 'bun:test'
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { dump } from '../support/dump.ts'
import { COMMAND, runPlantstore, serve } from '../support/executable.ts'
import { makeFolder } from '../support/folder.ts'
import { addPlants } from '../support/many-plants.ts'
import { runProgram, startProgram } from '../support/program.ts'
import { lacks } from '../support/requirement.ts'
import { STRACE } from '../support/strace.ts'
import { createTokenIn } from '../support/tokens.ts'
import { requireOneMoment } from './backup-moment.ts'
import { largePlantOf, startHistory } from './history.ts'
import { beginLife, endInGoodOrder } from './life.ts'
import { startLoad } from './load.ts'
import { losePower } from './power-loss/lose.ts'
import { DATABASE, recordCommand, recordFolder } from './power-loss/record.ts'
import { QUIET } from './restart.ts'
import { ROUNDS_TIMEOUT_MS, rounds, runRounds } from './rounds.ts'
import { traceCalls } from './system-calls.ts'
import { until } from './watch.ts'

/** Answers before a backup begins, so that there is something to be kept. */
const ANSWERS_BEFORE = 500
/** More than are copied at once: a signal comes in the middle. */
const MANY_PLANTS = 400_000
const SUBSETS = rounds(60, 300)
const KILLED_AT = ['pwrite64', 'fsync', 'link'] as const
const NEW_FILE = resolve(import.meta.dir, '../../src/store/sqlite/files/new-file.ts')
const WITHOUT_LINKS = { calls: ['link'], fault: 'error=EPERM', when: '1+' } as const
let kills = 0
afterAll(() => console.log(`killed ${kills} backups`))

describe('backup', () => {
  test(
    'under load is the database at one moment, and what follows is not in its way',
    () =>
      runRounds(rounds(2, 100), async (random) => {
        using life = await beginLife(random, startHistory(1, largePlantOf))
        const backup = join(makeBackups(life.database), 'plants.db')
        await using server = await serve(life.database, QUIET)
        const load = startLoad({ ...life, url: server.url, deletesPercent: 30 })
        await load.acknowledged(ANSWERS_BEFORE)
        const begunAt = life.history.now()
        const { stderr, exitCode } = await runPlantstore(['backup', backup, '--database', life.database])
        const endedAt = life.history.now()
        const after = load.statuses().get(200) ?? 0
        await until('the load goes on', () => (load.statuses().get(200) ?? 0) > after)
        await load.stop()

        expect({ stderr, exitCode }).toMatchObject({ exitCode: 0 })
        expect(load.statuses().keys().toArray().sort()).toEqual([200, 204])
        // Otherwise nothing was written meanwhile.
        expect(endedAt).toBeGreaterThan(begunAt)
        requireOneMoment(backup, life.history, begunAt, endedAt)
        expect(await server.end()).toBe(0)
        await endInGoodOrder(life)
      }),
    ROUNDS_TIMEOUT_MS,
  )

  test.skipIf(lacks(STRACE))(
    'that is killed leaves nothing of that name, and the next one removes what it has left',
    () =>
      runRounds(rounds(4, 60), async (random) => {
        using folder = makeFolder()
        const database = join(folder.path, 'plantstore.db')
        await createTokenIn(database)
        addPlants(database, 3000)
        const before = dump(database)
        const backup = join(makeBackups(database), 'plants.db')
        using whole = traceCalls({})
        await runPlantstore(['backup', `${backup}-0`, '--database', database], { under: whole.under })
        const { calls } = await whole.seen()
        const name = KILLED_AT[random(KILLED_AT.length)] ?? 'link'
        // The last calls come after it has its name.
        const upTo = calls.filter((call, at) => call.name === name && at <= indexOfLink(calls)).length
        const when = String(1 + random(upTo))
        using trace = traceCalls({ inject: { calls: [name], fault: 'signal=SIGKILL', when } })
        await runPlantstore(['backup', backup, '--database', database], { under: trace.under })
        const seen = (await trace.seen()).calls.at(-1)
        expect(seen).toMatchObject({ name, isLast: true })
        expect(existsSync(backup)).toBe(false)
        kills++

        const { exitCode } = await runPlantstore(['backup', backup, '--database', database])

        expect(exitCode).toBe(0)
        expect(dump(backup)).toEqual(before)
        expect(readdirSync(join(backup, '..')).filter((each) => each.includes('partial'))).toEqual([])
        expect(dump(database)).toEqual(before)
      }),
    ROUNDS_TIMEOUT_MS,
  )

  test.skipIf(lacks(STRACE))(
    'is synced before it gets its name, and its name after that',
    async () => {
      using folder = makeFolder()
      const database = join(folder.path, 'plantstore.db')
      await createTokenIn(database)
      const backups = makeBackups(database)
      using trace = traceCalls({})
      await runPlantstore(['backup', join(backups, 'plants.db'), '--database', database], { under: trace.under })

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
    },
    ROUNDS_TIMEOUT_MS,
  )

  test.skipIf(lacks(STRACE))(
    'leaves no file or the whole one, wherever the power is lost, and the whole one once it has ended',
    () =>
      runRounds(rounds(1, 5), async (random) => {
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
      }),
    ROUNDS_TIMEOUT_MS,
  )

  test.skipIf(lacks(STRACE))(
    'is made on a file system that has no links',
    async () => {
      using folder = makeFolder()
      const database = join(folder.path, 'plantstore.db')
      await createTokenIn(database)
      const backups = makeBackups(database)
      const backup = join(backups, 'plants.db')
      using trace = traceCalls({ inject: WITHOUT_LINKS })
      const { exitCode } = await runPlantstore(['backup', backup, '--database', database], { under: trace.under })

      expect((await trace.seen()).calls.filter(({ isInjected }) => isInjected)).toHaveLength(1)
      expect(exitCode).toBe(0)
      expect(dump(backup)).toEqual(dump(database))
      expect(readdirSync(backups)).toEqual(['plants.db'])
    },
    ROUNDS_TIMEOUT_MS,
  )

  test.skipIf(lacks(STRACE))(
    'never takes the name of a file that has just appeared on a file system that has no links',
    async () => {
      using folder = makeFolder()
      const [made, taken] = [join(folder.path, 'made'), join(folder.path, 'taken')]
      for (const path of [made, taken]) writeFileSync(path, path)
      using trace = traceCalls({ inject: WITHOUT_LINKS })
      const program = `const { renameToNew } = await import(process.argv[1])
        console.log(renameToNew(process.argv[2], process.argv[3]))`
      const { stdout } = await runProgram([...trace.under, process.execPath, '-e', program, NEW_FILE, made, taken])

      expect((await trace.seen()).calls.filter(({ isInjected }) => isInjected)).toHaveLength(1)
      expect(stdout).toBe('false\n')
      expect([made, taken].map((path) => readFileSync(path, 'utf8'))).toEqual([made, taken])
    },
    ROUNDS_TIMEOUT_MS,
  )

  test.each(['SIGTERM', 'SIGINT'] as const)(
    'that is stopped by %s says so, and leaves nothing',
    async (signal) => {
      using folder = makeFolder()
      const database = join(folder.path, 'plantstore.db')
      await createTokenIn(database)
      addPlants(database, MANY_PLANTS)
      const backups = makeBackups(database)
      const { child, ended } = startProgram([...COMMAND, 'backup', join(backups, 'plants.db'), '--database', database])
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

function makeBackups(database: string): string {
  const path = join(database, '..', 'backups')
  mkdirSync(path)
  return path
}

const indexOfLink = (calls: readonly { readonly name: string }[]): number =>
  calls.findIndex(({ name }) => name === 'link')
