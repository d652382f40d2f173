import { afterAll, describe, expect, test } from 'bun:test'
import { existsSync, statSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { dropLastCommit } from '../support/commits.ts'
import { serve } from '../support/executable.ts'
import { makeFolder } from '../support/folder.ts'
import { IS_LONG } from '../support/long.ts'
import { openConnection } from '../support/raw-connection.ts'
import { lacks } from '../support/requirement.ts'
import { SLACK_MS } from '../support/slack.ts'
import { STRACE } from '../support/strace.ts'
import { FAILED_REFUSAL, largePlantOf, startHistory } from './history.ts'
import { CONNECTIONS } from './load.ts'
import { runRounds, testRounds } from './rounds.ts'
import { logLines } from './server-log.ts'
import { callsOfStart, type SeenCall, SYNCS, traceCalls } from './system-calls.ts'
import { copyDatabase, expectRecovery, makeTestDatabase, QUIET, restart, type TestDatabase } from './test-database.ts'

const LAST_SYNC = 40
/** How long a failing sync takes. Meanwhile the next writes queue up. */
const SYNC_MS = 200
/** From the failure to the end of the process. */
const END_LIMIT_MS = 1000
/** After fewer large plants the WAL is long enough for a checkpoint. */
const PLANTS_PER_CHECKPOINT = 5000

/** Which syncs fail. strace counts the syncs of each thread apart. */
interface FailingSync {
  readonly of: 'any file' | 'the database or its WAL' | 'the database'
  readonly first: number
  readonly isForGood: boolean
}

const once = (of: FailingSync['of'], first: number): FailingSync => ({ of, first, isForGood: false })
const forGood = (of: FailingSync['of'], first: number): FailingSync => ({ of, first, isForGood: true })

/** The first sync of any file belongs to the start, on another thread. Only checkpoints sync the database. */
const FEW = [
  ...[once('the database or its WAL', 1), once('any file', 2), once('any file', 5), forGood('any file', 12)],
  ...[once('the database', 1), forGood('the database', 1)],
]
const upTo = (last: number, of: FailingSync['of'], first = 1): readonly FailingSync[] =>
  Array.from({ length: last - first + 1 }, (_, index) => [once(of, first + index), forGood(of, first + index)]).flat()
const ALL = [...upTo(1, 'the database or its WAL'), ...upTo(LAST_SYNC, 'any file', 2), ...upTo(3, 'the database')]

/** How many syncs failed, by what they synced. SQLite ignores a failing sync of the directory of a WAL. */
const failures = { group: 0, checkpoint: 0, directory: 0, start: 0 }
let longestEndMs = 0
afterAll(() => console.log(`syncs that failed: ${JSON.stringify(failures)}; ends within ${Math.ceil(longestEndMs)} ms`))

describe.skipIf(lacks(STRACE))('a sync that fails', () => {
  test.each(IS_LONG ? ALL : FEW)(
    'under load ends the process, and no answer promises more than the disk has: $of, number $first, for good: $isForGood',
    (sync) =>
      runRounds(1, async (random) => {
        using db = await makeTestDatabase({ random, history: startHistory(1, largePlantOf) })
        await failUnderLoad(db, sync)
        await expectRecovery(db)
      }),
  )

  testRounds(
    'ends a process in time that a tracer stops at every system call',
    { short: 1, long: 12 },
    async (random) => {
      using db = await makeTestDatabase({ random, history: startHistory(1, largePlantOf) })
      await failUnderLoad(db, once('any file', 5), { stopsAtAll: true })
    },
  )

  testRounds(
    'ends the start of a new database with one line, and the next start makes it',
    { short: 1, long: 1 },
    async (random) => {
      using empty = makeFolder()
      const calls = await callsOfStart(join(empty.path, 'plantstore.db'))
      const last = calls.filter(({ name }) => name === 'fsync' || name === 'fdatasync').length
      for (const sync of IS_LONG ? upTo(last, 'any file') : [once('any file', 1), forGood('any file', last)]) {
        using folder = makeFolder()
        const database = join(folder.path, 'plantstore.db')
        await failAtStart(database, sync, last)
        await (await restart(database)).kill()
        await expectRecovery(await makeTestDatabase({ random, folder: folder.path }))
      }
    },
  )
})

function traceFailing(database: string, { of, first, isForGood }: FailingSync, stopsAtAll = false) {
  const files = { 'any file': [], 'the database or its WAL': [database, `${database}-wal`], 'the database': [database] }
  const when = `when=${first}${isForGood ? '+' : ''}`
  const inject = `${SYNCS}:error=EIO:delay_exit=${SYNC_MS * 1000}:${when}`
  return traceCalls({ inject, files: files[of], stopsAtAll })
}

/** Lets a sync fail while 64 connections write, and checks what the server does. */
async function failUnderLoad(db: TestDatabase, sync: FailingSync, { stopsAtAll = false } = {}): Promise<void> {
  using trace = traceFailing(db.database, sync, stopsAtAll)
  await using server = await db.serve(QUIET, { under: trace.under })
  // In half of the rounds a client with a half-sent request would delay a normal end.
  using slow = db.random(2) === 0 ? await openConnection(server.port) : undefined
  void slow?.send('POST /plants HTTP/1.1\r\nHost: a\r\nX-Half: ')
  const load = db.startLoad(server)
  // A group commit has at most one write of each connection and one sync. After this number of writes the sync is over.
  const enough = (sync.first + 1) * (sync.of === 'the database' ? PLANTS_PER_CHECKPOINT : CONNECTIONS)
  const goesOn = await load.acknowledged(enough).then(
    () => true,
    () => false,
  )
  await load.stop()
  if (goesOn) slow?.cut()
  const exitCode = await (goesOn ? server.end() : server.ended())

  const levels = logLines(server).flatMap(({ level }) => (level === 'error' || level === 'fatal' ? [level] : []))
  const seen = { exitCode, refusals: db.history.failures(), levels, stderr: server.stderr() }
  const { calls, endedAtMs } = await trace.seen()
  // They hold what was acknowledged.
  const files = [db.database, `${db.database}-wal`]
  const failed = calls.find(({ isInjected, path }) => isInjected && files.includes(path))
  if (failed === undefined) {
    expect(calls).toContainEqual(expect.objectContaining({ path: dirname(db.database), isInjected: true }))
    expect(seen).toEqual({ exitCode: 0, refusals: [], levels: [], stderr: '' })
    failures.directory++
    return
  }
  expect(seen).toEqual({ exitCode: 3, refusals: [FAILED_REFUSAL], levels: ['fatal'], stderr: '' })
  // The disk has failed, and nobody has read a damaged page.
  expect(existsSync(`${db.database}-damage-found`)).toBe(false)
  const endMs = endedAtMs - failed.atMs - SYNC_MS
  longestEndMs = Math.max(longestEndMs, endMs)
  expect(endMs).toBeLessThan(END_LIMIT_MS + SLACK_MS)
  // Nothing was written during the sync, so a later write would show in the files' coarse times.
  for (const file of files) expect(statSync(file).mtimeMs).toBeLessThan(failed.atMs + SYNC_MS / 2)
  checkWithoutSync(db, calls, failed)
}

/**
 * Checks the history without the group commit that the failed sync should have brought to the disk. A checkpoint syncs only
 * what the WAL already has.
 */
function checkWithoutSync({ database, history }: TestDatabase, calls: readonly SeenCall[], failed: SeenCall): void {
  const before = calls.slice(0, calls.indexOf(failed))
  const last = before.findLast(({ path, name }) => path === `${database}-wal` && name !== 'pread64')
  const isGroup = last?.name === 'pwrite64'
  failures[isGroup ? 'group' : 'checkpoint']++
  using copy = copyDatabase(database)
  if (isGroup) dropLastCommit(copy.database)
  history.check(copy.database)
}

/** Lets one of the syncs fail that make a database. */
async function failAtStart(database: string, sync: FailingSync, last: number): Promise<void> {
  using trace = traceFailing(database, sync)
  const outcome = await serve(database, QUIET, { under: trace.under }).then(
    async (server) => {
      await server.kill()
      return 'listening'
    },
    (error: Error) => error.message,
  )
  const injected = (await trace.seen()).calls.filter(({ isInjected }) => isInjected)
  expect(injected).not.toEqual([])
  // SQLite ignores failing syncs of the directory. The last sync is the server's own.
  const isIgnored = injected.every(({ path }) => path === dirname(database)) && sync.first < last
  if (isIgnored) expect({ sync, outcome }).toEqual({ sync, outcome: 'listening' })
  else expect(outcome).toMatch(/^the server did not listen: exit code 3\nplantstore: [^\n]+\n$/)
  failures[isIgnored ? 'directory' : 'start']++
}
