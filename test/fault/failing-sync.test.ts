import { afterAll, describe, expect, test } from 'bun:test'
import { statSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { dropLastCommit } from '../support/commits.ts'
import { serve } from '../support/executable.ts'
import { makeFolder } from '../support/folder.ts'
import { lacks } from '../support/requirement.ts'
import { STRACE } from '../support/strace.ts'
import { createTokenIn } from '../support/tokens.ts'
import { largePlantOf, startHistory } from './history.ts'
import { beginLife, callsOfStart, endInGoodOrder, type Life } from './life.ts'
import { CONNECTIONS, startLoad } from './load.ts'
import { openConnection } from './raw-connection.ts'
import { copyDatabase, QUIET, restart } from './restart.ts'
import { IS_LONG, ROUNDS_TIMEOUT_MS, rounds, runRounds } from './rounds.ts'
import { type SeenCall, SYNCS, traceCalls } from './system-calls.ts'

const LAST_SYNC = 40
/** How long a sync takes that fails: meanwhile the next writes gather. */
const SYNC_MS = 200
/** From the failure to the end of the process, and what a machine that is busy with other things may add. */
const END_LIMIT_MS = 1000
const SLACK_MS = 1500
/** Of large plants; after fewer the WAL has grown enough for a checkpoint. */
const PLANTS_PER_CHECKPOINT = 5000

/** Which syncs fail: strace counts those of each thread by themselves. */
interface FailingSync {
  readonly of: 'any file' | 'the database or its WAL' | 'the database'
  readonly first: number
  readonly isForGood: boolean
}

const once = (of: FailingSync['of'], first: number): FailingSync => ({ of, first, isForGood: false })
const forGood = (of: FailingSync['of'], first: number): FailingSync => ({ of, first, isForGood: true })

/** Of any file the first is one of the start, by another thread. The database alone is synced by checkpoints alone. */
const FEW = [
  once('the database or its WAL', 1),
  once('any file', 2),
  once('any file', 5),
  forGood('any file', 12),
  once('the database', 1),
  forGood('the database', 1),
]
const upTo = (last: number, of: FailingSync['of'], first = 1): readonly FailingSync[] =>
  Array.from({ length: last - first + 1 }, (_, index) => [once(of, first + index), forGood(of, first + index)]).flat()
const ALL = [...upTo(1, 'the database or its WAL'), ...upTo(LAST_SYNC, 'any file', 2), ...upTo(3, 'the database')]

/** How many syncs failed of what. That of the directory of a WAL is ignored by SQLite: all goes on. */
const failures = { group: 0, checkpoint: 0, directory: 0, start: 0 }
let longestEndMs = 0
afterAll(() => console.log(`syncs that failed: ${JSON.stringify(failures)}; ends within ${Math.ceil(longestEndMs)} ms`))

describe.skipIf(lacks(STRACE))('a sync that fails', () => {
  test.each(IS_LONG ? ALL : FEW)(
    'under load ends the process, and nothing is answered that is not on disk: $of, number $first, for good: $isForGood',
    (sync) =>
      runRounds(1, async (random) => {
        using life = await beginLife(random, startHistory(1, largePlantOf))
        await failUnderLoad(life, sync)
        await endInGoodOrder(life)
      }),
    ROUNDS_TIMEOUT_MS,
  )

  test(
    'under load and a tracer that stops the process at every system call ends the process in time',
    () =>
      runRounds(rounds(2, 12), async (random) => {
        using life = await beginLife(random, startHistory(1, largePlantOf))
        await failUnderLoad(life, once('any file', 5), { stopsAtAll: true })
      }),
    ROUNDS_TIMEOUT_MS,
  )

  test(
    'ends the start of a new database with one line, and the next start makes it',
    () =>
      runRounds(1, async (random) => {
        using empty = makeFolder()
        const calls = await callsOfStart(join(empty.path, 'plantstore.db'))
        const last = calls.filter(isSync).length
        for (const sync of IS_LONG ? upTo(last, 'any file') : [once('any file', 1), forGood('any file', last)]) {
          using folder = makeFolder()
          const database = join(folder.path, 'plantstore.db')
          await failAtStart(database, sync, last)
          await (await restart(database)).kill()
          await endInGoodOrder({ database, token: await createTokenIn(database), history: startHistory(), random })
        }
      }),
    ROUNDS_TIMEOUT_MS,
  )
})

const isSync = ({ name }: SeenCall) => name === 'fsync' || name === 'fdatasync'

function traceFailing(database: string, { of, first, isForGood }: FailingSync, stopsAtAll = false) {
  const files = { 'any file': [], 'the database or its WAL': [database, `${database}-wal`], 'the database': [database] }
  const fault = `error=EIO:delay_exit=${SYNC_MS * 1000}`
  return traceCalls({
    inject: { calls: SYNCS, fault, when: `${first}${isForGood ? '+' : ''}` },
    files: files[of],
    stopsAtAll,
  })
}

/** Lets a sync fail while 64 connections write, and looks at what the server does. */
async function failUnderLoad(life: Life, sync: FailingSync, { stopsAtAll = false } = {}): Promise<void> {
  using trace = traceFailing(life.database, sync, stopsAtAll)
  await using server = await serve(life.database, QUIET, { under: trace.under })
  // Half of the time somebody is there who would make the end wait.
  using slow = life.random(2) === 0 ? await openConnection(server.port) : undefined
  slow?.write('POST /plants HTTP/1.1\r\nHost: a\r\nX-Half: ')
  const errors = new Set<string>()
  const load = startLoad({
    ...life,
    url: server.url,
    onAnswer: ({ status, body }) => void (status >= 400 && errors.add(`${status} ${JSON.parse(body).error}`)),
  })
  // A group has at most one write of each connection, and a sync: after so many that sync is over.
  const enough = (sync.first + 1) * (sync.of === 'the database' ? PLANTS_PER_CHECKPOINT : CONNECTIONS)
  const goesOn = await load.acknowledged(enough).then(
    () => true,
    () => false,
  )
  await load.stop()
  if (goesOn) slow?.cut()
  const exitCode = await (goesOn ? server.end() : server.ended())

  const seen = { exitCode, errors: [...errors], log: failuresIn(server.stdout()), stderr: server.stderr() }
  const { calls, endedAtMs } = await trace.seen()
  const failed = calls.find(({ isInjected, path }) => isInjected && filesOf(life).includes(path))
  if (failed === undefined) {
    expect(calls).toContainEqual(expect.objectContaining({ path: dirname(life.database), isInjected: true }))
    expect(seen).toEqual({ exitCode: 0, errors: [], log: [], stderr: '' })
    failures.directory++
    return
  }
  expect(seen).toEqual({ exitCode: 3, errors: ['503 50302'], log: [expect.stringContaining('"fatal"')], stderr: '' })
  expectEndInTime(endedAtMs - failed.atMs - SYNC_MS)
  expectNoWriteAfter(failed, life)
  judgeSynced(life, calls, failed)
}

/** The files that hold what was acknowledged. */
const filesOf = ({ database }: Life) => [database, `${database}-wal`]

/** The lines of a log that say that something has failed. */
const failuresIn = (log: string) => log.split('\n').filter((line) => /"level":"(?:error|fatal)"/.test(line))

function expectEndInTime(endMs: number): void {
  longestEndMs = Math.max(longestEndMs, endMs)
  expect(endMs).toBeLessThan(END_LIMIT_MS + SLACK_MS)
}

/** Nothing was written while the sync was under way, so that what was written later shows in the files' coarse times. */
function expectNoWriteAfter(failed: SeenCall, life: Life): void {
  for (const file of filesOf(life)) expect(statSync(file).mtimeMs).toBeLessThan(failed.atMs + SYNC_MS / 2)
}

/**
 * Judges what is left if what the failed sync was to bring to the disk did not get there: a group, if one was written
 * just before. What a checkpoint syncs is in the WAL already.
 */
function judgeSynced({ database, history }: Life, calls: readonly SeenCall[], failed: SeenCall): void {
  const before = calls.slice(0, calls.indexOf(failed))
  const last = before.findLast(({ path, name }) => path === `${database}-wal` && name !== 'pread64')
  const isGroup = last?.name === 'pwrite64'
  failures[isGroup ? 'group' : 'checkpoint']++
  using copy = copyDatabase(database)
  if (isGroup) dropLastCommit(copy.database)
  history.check(copy.database)
}

/** Lets a sync fail of those that make a database. */
async function failAtStart(database: string, sync: FailingSync, last: number): Promise<void> {
  using trace = traceFailing(database, sync)
  const said = await serve(database, QUIET, { under: trace.under }).then(
    async (server) => {
      server.signal('SIGKILL')
      await server.ended()
      return 'listening'
    },
    (error: Error) => error.message,
  )
  const injected = (await trace.seen()).calls.filter(({ isInjected }) => isInjected)
  expect(injected).not.toEqual([])
  // SQLite ignores those of the directory. The last of all is our own.
  const isIgnored = injected.every(({ path }) => path === dirname(database)) && sync.first < last
  if (isIgnored) expect({ sync, said }).toEqual({ sync, said: 'listening' })
  else expect(said).toMatch(/^the server did not listen: exit code 3\nplantstore: [^\n]+\n$/)
  failures[isIgnored ? 'directory' : 'start']++
}
