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
import { countCommits } from '../support/commits.ts'
import { serve } from '../support/executable.ts'
import { makeFolder } from '../support/folder.ts'
import type { Random } from '../support/random.ts'
import { lacks } from '../support/requirement.ts'
import { RESTRICTED, SETPRIV } from '../support/restricted.ts'
import { injectFault, STRACE } from '../support/strace.ts'
import { createTokenIn } from '../support/tokens.ts'
import { startHistory } from './history.ts'
import { startLoad } from './load.ts'
import { QUIET } from './restart.ts'
import { ROUNDS_TIMEOUT_MS, rounds, runRounds } from './rounds.ts'
import { countAnswers, fatalReasons, until, untilEnded } from './watch.ts'

/** Successes before the file is lost, at most. */
const BEFORE_MAX = 2000
const FAILED = '503 50302, Retry-After: 1'
const LOST = expect.stringContaining('was moved, replaced or deleted')

const UNKNOWN = { error: 50302, message: expect.stringContaining('unknown') }
/** How long a sync takes that is in the way. */
const SYNC_MS = 500

const FILES = ['', '-wal', '-shm']

/** What can happen to the files of a database while a server has them open. `aside` is a path that is free. */
const LOSSES: Readonly<Record<string, (database: string, aside: string) => void>> = {
  'moved away': renameSync,
  'moved away with the files beside it': (database, aside) => {
    for (const end of FILES) renameSync(database + end, aside + end)
  },
  'moved away with its folder': (database, aside) => renameSync(dirname(database), aside),
  'moved away, with a link to it in its place': (database, aside) => {
    renameSync(database, aside)
    symlinkSync(aside, database)
  },
  deleted: (database) => rmSync(database),
  'deleted with the files beside it': (database) => {
    for (const end of FILES) rmSync(database + end)
  },
  'robbed of its WAL': (database) => rmSync(`${database}-wal`),
  replaced: (database, aside) => {
    copyFileSync(database, aside)
    renameSync(aside, database)
  },
}

describe('a database that is lost under load', () => {
  test.each(Object.entries(LOSSES))(
    '(%s) acknowledges nothing any more, and all that it did is in the lost files; the server ends with 3',
    (_, lose) => runRounds(rounds(1, 3), (random) => loseUnderLoad(lose, random)),
    ROUNDS_TIMEOUT_MS,
  )
})

/** Loses the database at some moment of a load, and looks at the files that were lost by other names of theirs. */
async function loseUnderLoad(lose: (database: string, aside: string) => void, random: Random): Promise<void> {
  using folder = makeFolder()
  const database = join(folder.path, 'data', 'plantstore.db')
  const kept = join(folder.path, 'kept.db')
  mkdirSync(dirname(database))
  const token = await createTokenIn(database)
  const history = startHistory()
  const answers = countAnswers()
  await using server = await serve(database, QUIET)
  const load = startLoad({ url: server.url, token, history, random, onAnswer: answers.record })
  await load.acknowledged(1 + random(BEFORE_MAX))
  for (const end of ['', '-wal']) linkSync(database + end, kept + end)

  lose(database, join(folder.path, 'aside'))
  const sentBefore = history.entries().length
  const inPlace = lookAt(database, kept)

  expect(await untilEnded(server)).toBe(3)
  await load.stop()
  const late = history.entries().slice(sentBefore)
  expect(late.length).toBeGreaterThan(0)
  expect(late.filter(({ outcome }) => outcome === 'acknowledged')).toEqual([])
  expect(answers.refusals()).toEqual([FAILED])
  expect(fatalReasons(server)).toEqual([LOST])
  expect(server.stderr()).toBe('')
  expect(lookAt(database, kept)).toBe(inPlace)
  history.check(kept)
}

/** What has taken the place of a file that was lost: it is neither made anew nor, what took its place, written to. */
function lookAt(path: string, lost: string): string {
  const file = statSync(path, { throwIfNoEntry: false })
  if (file === undefined) return 'nothing'
  return file.ino === statSync(lost).ino ? 'the file itself' : Bun.SHA256.hash(readFileSync(path), 'hex')
}

describe('a database that is lost before a server has written anything', () => {
  test.each<[loss: string, lose: (database: string) => void, lists: number]>([
    ['moved away', (database) => renameSync(database, `${database}.moved`), 0],
    ['moved away', (database) => renameSync(database, `${database}.moved`), 1],
    ['deleted', (database) => rmSync(database), 0],
    ['deleted', (database) => rmSync(database), 1],
  ])('(%s) is not made anew when the server ends, in good order', async (_, lose, lists) => {
    using folder = makeFolder()
    const database = join(folder.path, 'plantstore.db')
    const token = await createTokenIn(database)
    await using server = await serve(database)
    for (let list = 0; list < lists; list++) {
      expect((await server.request('GET', '/plants', { token })).status).toBe(200)
    }

    lose(database)
    const exitCode = await server.end()

    // It may have noticed or not.
    expect([0, 3]).toContain(exitCode)
    expect(server.stderr()).toBe('')
    expect(readdirSync(folder.path)).not.toContain('plantstore.db')
  })

  test('(replaced) has nothing written into what took its place', async () => {
    using folder = makeFolder()
    const database = join(folder.path, 'plantstore.db')
    const token = await createTokenIn(database)
    const backup = readFileSync(database)
    await using server = await serve(database)
    // The thread that writes compares the file when it starts, too, and the server could end before the request. A delete that
    // finds nothing waits for the thread and writes nothing.
    expect((await server.request('DELETE', '/plants/1', { token })).status).toBe(404)

    await Bun.write(`${database}.backup`, backup)
    renameSync(`${database}.backup`, database)
    const answer = await server.request('POST', '/plants', { token, body: { id: 1, name: 'Fern' } })

    expect([answer.status, await answer.json()]).toEqual([503, { error: 50302, message: expect.any(String) }])
    expect(await untilEnded(server)).toBe(3)
    expect(readFileSync(database).equals(backup)).toBe(true)
  })
})

describe.skipIf(lacks(STRACE))('a database that is lost while a write waits for its sync', () => {
  test('does not acknowledge that write', async () => {
    using folder = makeFolder()
    const database = join(folder.path, 'plantstore.db')
    const token = await createTokenIn(database)
    await using server = await serve(database)
    const create = (id: number) => server.request('POST', '/plants', { token, body: { id, name: 'Fern' } })
    expect((await create(1)).status).toBe(200)
    const commits = countCommits(database)

    await using _injection = await injectFault(server.pid, ['fsync', 'fdatasync'], `delay_enter=${SYNC_MS * 1000}`)
    const asked = create(2)
    await until('it is written', () => countCommits(database) > commits)
    for (const end of FILES) renameSync(database + end, `${database}.moved${end}`)
    const answer = await asked

    expect([answer.status, await answer.json()]).toEqual([503, UNKNOWN])
    expect(await untilEnded(server)).toBe(3)
    expect(fatalReasons(server)).toEqual([LOST])
  })
})

describe('a database that a server must not look at any more', () => {
  test.skipIf(lacks(SETPRIV))('acknowledges nothing, and ends it with 3', async () => {
    using folder = makeFolder()
    const database = join(folder.path, 'plantstore.db')
    const token = await createTokenIn(database)
    await using server = await serve(database, [], { under: RESTRICTED })
    const create = (id: number) => server.request('POST', '/plants', { token, body: { id, name: 'Fern' } })
    expect((await create(1)).status).toBe(200)

    chmodSync(folder.path, 0o000)
    const answer = await create(2)
    chmodSync(folder.path, 0o700)

    expect([answer.status, await answer.json()]).toEqual([503, UNKNOWN])
    expect(await untilEnded(server)).toBe(3)
    expect(fatalReasons(server)).toEqual([LOST])
  })
})
