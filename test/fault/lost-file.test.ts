import { describe, expect, test } from 'bun:test'
import {
  chmodSync,
  copyFileSync,
  linkSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { answerOf } from '../cli/support/service-client.ts'
import { countCommits } from '../support/commits.ts'
import { makeFolder } from '../support/folder.ts'
import type { Random } from '../support/random.ts'
import { lacks } from '../support/requirement.ts'
import { RESTRICTED, SETPRIV } from '../support/restricted.ts'
import { injectFault, STRACE } from '../support/strace.ts'
import { until, untilEnded } from '../support/until.ts'
import { FAILED_REFUSAL } from './history.ts'
import { rounds, runRounds } from './rounds.ts'
import { fatalReasons } from './server-log.ts'
import { expectFailure, makeTestDatabase, QUIET, type Server } from './test-database.ts'

/** The most successes before the file is lost. */
const BEFORE_MAX = 2000
const LOST = /was moved, replaced or deleted/
const UNKNOWN = { error: 50302, message: expect.stringContaining('unknown') }
/** How long the delayed sync takes. */
const SYNC_MS = 500

const SUFFIXES = ['', '-wal', '-shm']

/** What can happen to the files of a database while a server has the files open. `aside` is an unused path. */
const LOSSES: Readonly<Record<string, (database: string, aside: string) => void>> = {
  'moved away': renameSync,
  'moved away with its WAL': (database, aside) => {
    for (const suffix of SUFFIXES) renameSync(database + suffix, aside + suffix)
  },
  'moved away with its folder': (database, aside) => renameSync(dirname(database), aside),
  'moved away, with a link to it in its place': (database, aside) => {
    renameSync(database, aside)
    symlinkSync(aside, database)
  },
  deleted: (database) => rmSync(database),
  'deleted with its WAL': (database) => {
    for (const suffix of SUFFIXES) rmSync(database + suffix)
  },
  'left without its WAL': (database) => rmSync(`${database}-wal`),
  replaced: (database, aside) => {
    copyFileSync(database, aside)
    renameSync(aside, database)
  },
}

describe('a server under load', () => {
  test.each(Object.entries(LOSSES))(
    'whose database is %s acknowledges nothing more and ends with 3, and the lost files have all that it acknowledged',
    (_, lose) => runRounds(rounds(1, 3), (random) => loseUnderLoad(lose, random)),
  )
})

/** Loses the database at some moment of a load, and checks the lost files through other names of theirs. */
async function loseUnderLoad(lose: (database: string, aside: string) => void, random: Random): Promise<void> {
  using folder = makeFolder()
  mkdirSync(join(folder.path, 'data'))
  using db = await makeTestDatabase({ random, folder: join(folder.path, 'data') })
  const { database, history } = db
  const kept = join(folder.path, 'kept.db')
  await using server = await db.serve()
  const load = db.startLoad(server)
  await load.acknowledged(1 + random(BEFORE_MAX))
  for (const suffix of ['', '-wal']) linkSync(database + suffix, kept + suffix)

  lose(database, join(folder.path, 'aside'))
  const sentBefore = history.writes().length
  const inPlace = describePlace(database, kept)

  await expectFailure(db, server, load, { sentBefore, reason: LOST })
  expect(history.failures()).toEqual([FAILED_REFUSAL])
  // The server has neither made a new file nor written to the one in its place.
  expect(describePlace(database, kept)).toBe(inPlace)
  history.check(kept)
}

/** What is at the path of a lost file. */
function describePlace(path: string, lost: string): string {
  const file = statSync(path, { throwIfNoEntry: false })
  if (file === undefined) return 'nothing'
  return file.ino === statSync(lost).ino ? 'the file itself' : Bun.SHA256.hash(readFileSync(path), 'hex')
}

describe('a server that has written nothing', () => {
  test.each([0, 1])(
    'whose database is deleted after %d lists does not make the file again when it ends',
    async (lists) => {
      using db = await makeTestDatabase()
      await using server = await db.serve()
      if (lists > 0)
        expect(await answerOf(server.request('GET', '/plants', { token: db.token }))).toMatchObject({ status: 200 })

      rmSync(db.database)
      const exitCode = await server.end()

      // The server may or may not have noticed.
      expect([0, 3]).toContain(exitCode)
      expect(server.stderr()).toBe('')
      expect(readdirSync(db.folder)).not.toContain('plantstore.db')
    },
  )

  test('whose database is replaced writes nothing to the new file', async () => {
    using db = await makeTestDatabase()
    const backup = readFileSync(db.database)
    await using server = await db.serve()
    // The writing thread compares the files when it starts, so the server could end before the request. A delete that finds
    // nothing waits for the thread and writes nothing.
    expect(await answerOf(server.request('DELETE', '/plants/1', { token: db.token }))).toMatchObject({ status: 404 })

    await Bun.write(`${db.database}.backup`, backup)
    renameSync(`${db.database}.backup`, db.database)

    expect(await create(server, db.token, 1)).toEqual([503, { error: 50302, message: expect.any(String) }])
    expect(await untilEnded(server)).toBe(3)
    expect(readFileSync(db.database).equals(backup)).toBe(true)
  })
})

describe('a server does not acknowledge a create', () => {
  test.skipIf(lacks(STRACE))('whose sync is under way when the database is moved away', async () => {
    using db = await makeTestDatabase()
    await using server = await db.serve()
    expect(await create(server, db.token, 1)).toEqual([200, expect.anything()])
    const commits = countCommits(db.database)

    await using _injection = await injectFault(server.pid, ['fsync', 'fdatasync'], `delay_enter=${SYNC_MS * 1000}`)
    const answer = create(server, db.token, 2)
    await until('the create is in the WAL', (see) => see(countCommits(db.database)) > commits)
    for (const suffix of SUFFIXES) renameSync(db.database + suffix, `${db.database}.moved${suffix}`)

    expect(await answer).toEqual([503, UNKNOWN])
    expect(await untilEnded(server)).toBe(3)
    expect(fatalReasons(server)).toEqual([expect.stringMatching(LOST)])
  })

  test.skipIf(lacks(SETPRIV))('while the server may not look at the database', async () => {
    using db = await makeTestDatabase()
    await using server = await db.serve(QUIET, { under: RESTRICTED })
    expect(await create(server, db.token, 1)).toEqual([200, expect.anything()])

    chmodSync(db.folder, 0o000)
    const answer = await create(server, db.token, 2)
    chmodSync(db.folder, 0o700)

    expect(answer).toEqual([503, UNKNOWN])
    expect(await untilEnded(server)).toBe(3)
    expect(fatalReasons(server)).toEqual([expect.stringMatching(LOST)])
  })
})

/** Creates a plant. Resolves to the status and the body of the answer. */
async function create(server: Server, token: string, id: number): Promise<unknown[]> {
  const answer = await server.request('POST', '/plants', { token, body: { id, name: 'Fern' } })
  return [answer.status, await answer.json()]
}
