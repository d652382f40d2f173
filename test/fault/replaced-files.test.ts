import { describe, expect, test } from 'bun:test'
import { cpSync, existsSync, readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { MIGRATIONS } from '../../src/store/sqlite/format.ts'
import { queryAll, runSql } from '../store/sqlite/files.ts'
import { runPlantstore, serve } from '../support/executable.ts'
import { makeFolder } from '../support/folder.ts'
import { IS_LONG } from '../support/long.ts'
import { type Random, randomNumbers, seedsOf } from '../support/random.ts'
import { lacks } from '../support/requirement.ts'
import { STRACE } from '../support/strace.ts'
import { createTokenIn } from '../support/tokens.ts'
import { until } from '../support/until.ts'
import { rounds } from './rounds.ts'
import { CALLS_ON_FILE, type Point, startStopped } from './stopped-command.ts'
import { type SeenCall, type TraceOptions, traceCalls } from './system-calls.ts'

/** At so many of its calls a command is stopped. */
const POINTS = rounds(1, Number.POSITIVE_INFINITY)
const [SEED = 1] = seedsOf('FAULT_SEED', 1)
const OLDER = MIGRATIONS.length - 1

/** Commands that use the database, which they find with an older schema. A server is asked to end as soon as it has begun. */
const COMMANDS: readonly string[] = [
  'serve --listen 127.0.0.1:0',
  'token create --user late',
  'token list',
  'user block old',
  'user list',
  'status',
  'check',
  'export',
  'import late.jsonl',
  'backup other.db',
  'restore backup.db --force',
]

/** A folder with an old database, a backup of a new one, whose token this has, and a file to import. */
async function makeInputs(version = OLDER) {
  const folder = makeFolder()
  const at = (name: string) => join(folder.path, name)
  runSql(
    at('plantstore.db'),
    ...['pragma journal_mode = wal', ...MIGRATIONS.slice(0, version)],
    ...['pragma application_id = 0x706c7374', `pragma user_version = ${version}`],
    "insert into users (name, created_at_ms) values ('old', 0)",
  )
  const token = await createTokenIn(at('new.db'), 'new')
  expect(await runPlantstore(['backup', at('backup.db'), '--database', at('new.db')])).toMatchObject({ exitCode: 0 })
  await Bun.write(at('late.jsonl'), '{"user":"late","id":1,"name":"Fern"}\n')
  return { path: folder.path, token, [Symbol.dispose]: folder[Symbol.dispose] }
}

/** Starts a command in a folder, and stops it at one of its calls on the database. */
const startCommand = (folder: string, command: string, stopAt?: Point) => {
  const database = join(folder, 'plantstore.db')
  const args = [...command.split(' '), '--database', database]
  return startStopped(args, { cwd: folder, trace: join(folder, 'trace'), calls: CALLS_ON_FILE, file: database, stopAt })
}

/** What became of a command that was stopped at a call, and of the database that was restored meanwhile. */
async function restoreMeanwhile(
  inputs: { path: string; token: string },
  command: string,
  stopAt: Point,
  isServed: boolean,
) {
  using folder = makeFolder()
  cpSync(inputs.path, folder.path, { recursive: true })
  const database = join(folder.path, 'plantstore.db')
  const waiting = startCommand(folder.path, command, stopAt)
  const { stopped } = await waiting.isStopped()
  const restored = await runPlantstore(['restore', join(folder.path, 'backup.db'), '--force', '--database', database])
  const server = isServed && restored.exitCode === 0 ? await serve(database) : undefined
  const created = await server?.request('POST', '/plants', { token: inputs.token, body: { id: 7, name: 'Ivy' } })
  const { exitCode, stderr } = await waiting.finish()
  await server?.kill()
  const users = queryAll(database, 'select name from users order by id').flat().map(String)
  return {
    stopped,
    isRestored: restored.exitCode === 0,
    outcome: {
      restore: restored.exitCode === 0 ? '' : restored.stderr,
      exitCode,
      stderr,
      problems: queryAll(database, 'pragma integrity_check').flat(),
      first: users[0],
      created: created?.status,
      plants: queryAll(database, 'select id from plants where id = 7').flat().map(Number),
    },
  }
}

describe.skipIf(lacks(STRACE))('a database that restore replaces', () => {
  test.each([...COMMANDS])('is whole and keeps its writes, wherever %j was stopped meanwhile', async (command) => {
    // Lists refuse an older schema.
    using inputs = await makeInputs(command.endsWith('list') ? MIGRATIONS.length : OLDER)
    using probed = makeFolder()
    cpSync(inputs.path, probed.path, { recursive: true })
    const probe = startCommand(probed.path, command)
    await probe.finish()
    const points = await probe.points()
    const counts = { restored: 0, refused: 0 }
    for (const [index, stopAt] of pick(randomNumbers(SEED), points)) {
      for (const isServed of IS_LONG ? [false, true] : [true]) {
        const { stopped, isRestored, outcome } = await restoreMeanwhile(inputs, command, stopAt, isServed)
        const { exitCode } = outcome

        // The number of calls varies by one or two, and a server that listens makes its last calls when it ends.
        const isLast = index > points.length - 3 || command.startsWith('serve')
        expect(stopped || isLast, `${stopAt.name} ${stopAt.count}`).toBe(true)
        expect([0, 1, 3], outcome.stderr).toContain(exitCode)
        expect({ stopAt, isServed, ...outcome }).toMatchObject({
          restore: isRestored ? '' : expect.stringMatching(/ is (?:open in|locked by) another process/),
          stderr: expect.not.stringMatching(/malformed|damaged|SQLiteError| at /),
          problems: ['ok'],
          first: isRestored || command.startsWith('restore') ? 'new' : 'old',
          ...(isServed && isRestored && { created: 200, plants: [7] }),
        })
        counts[isRestored ? 'restored' : 'refused']++
      }
    }
    console.log(`${command}: ${points.length} calls, ${JSON.stringify(counts)}`)
  })
})

test.skipIf(lacks(STRACE))(
  'a start waits for a restore that has given the file its name, and removes the other name',
  async () => {
    using inputs = await makeInputs()
    rmSync(join(inputs.path, 'plantstore.db'))
    const restoring = startCommand(inputs.path, 'restore backup.db', { name: 'link', count: 1 })
    expect(await restoring.isStopped()).toEqual({ stopped: true })
    const hasOtherName = () => readdirSync(inputs.path).some((name) => name.includes('.partial-'))
    expect(hasOtherName()).toBe(true)

    const listing = runPlantstore(['token', 'list', '--database', join(inputs.path, 'plantstore.db')])
    await until('the other name is gone', () => !hasOtherName())

    expect(await restoring.finish()).toMatchObject({ exitCode: 0 })
    expect(await listing).toMatchObject({ exitCode: 0, stdout: expect.stringContaining('new') })
  },
)

describe.skipIf(lacks(STRACE))('a fault is told in one line', () => {
  /** Runs a command on the inputs, with a fault of its calls. Returns the calls. */
  const runWith = async (folder: string, args: readonly string[], options: TraceOptions) => {
    using trace = traceCalls(options)
    const ended = await runPlantstore(args, { cwd: folder, under: trace.under })
    return { ...ended, ...(await trace.seen()) }
  }

  test.each([
    ['plantstore.db', ['restore', 'backup.db', '--force', '--database', 'plantstore.db']],
    ['made.db', ['restore', 'backup.db', '--database', 'made.db']],
    ['made.db', ['backup', 'made.db']],
    ['made.db', ['copy', '--from', 'new.db', '--to', 'made.db']],
  ])('that %s is there, if only its folder could not be synced: %j', async (name, args) => {
    using inputs = await makeInputs()
    using probed = makeFolder()
    cpSync(inputs.path, probed.path, { recursive: true })
    const { calls } = await runWith(probed.path, args, {})
    const isOfFolder = ({ path }: SeenCall) => path === probed.path
    const before = calls.slice(
      0,
      calls.findLastIndex((call) => call.name === 'fsync' && isOfFolder(call)),
    )
    const nth = 1 + before.filter(({ name: call }) => call === 'fsync').length

    const { stderr, exitCode } = await runWith(inputs.path, args, { inject: `fsync:error=EIO:when=${nth}` })

    expect(existsSync(join(inputs.path, name))).toBe(true)
    expect({ exitCode, told: stderr.split('\n').at(-2) }).toEqual({
      exitCode: 1,
      told: `plantstore: ${join(inputs.path, name)} is there, but a loss of power may undo that, because its directory could not be synced: EIO: i/o error, fsync.`,
    })
  })

  test('that a database cannot be locked', async () => {
    using inputs = await makeInputs()
    const database = join(inputs.path, 'plantstore.db')
    const args = ['restore', 'backup.db', '--force', '--database', 'plantstore.db']

    const fault = ['-e', 'trace=fcntl', '-e', 'inject=fcntl:error=EIO']
    const under = ['strace', '-D', '-f', '-o', '/dev/null', '-P', database, ...fault]

    const { stderr, exitCode } = await runPlantstore(args, { cwd: inputs.path, under })

    expect({ stderr, exitCode }).toEqual({
      stderr: expect.stringMatching(
        /^The database is .*\nplantstore: The file .*\/plantstore\.db cannot be used: SQLiteError: disk I\/O error\.\n$/,
      ),
      exitCode: 3,
    })
  })
})

/** All of the points, or some of them, with their indexes. */
function pick(random: Random, points: readonly Point[]): readonly (readonly [number, Point])[] {
  const all = [...points.entries()]
  if (IS_LONG) return all
  return Array.from({ length: POINTS }, () => all[random(all.length)] as (typeof all)[number])
}
