import { expect, test } from 'bun:test'
import { fileIdentity } from '../../../src/store/sqlite/files/preflight.ts'
import {
  announceCommit,
  awaitStamps,
  commitMsOf,
  NO_STAMP,
  NOTE,
  NOTE_MAX_MS,
  noteCommit,
  shareLastCommit,
  stampsOf,
} from '../../../src/store/sqlite/versions/last-commit.ts'
import { openWriterHere } from '../../../src/store/sqlite/writer-here.ts'
import { makeDatabase, makeDatabaseFolder, queryAll, runSql } from './files.ts'

/** So often it is asked for a note that does not come: to wait each time would take a second. */
const ASKS = 500
const COMMITS = 100
const [BEFORE, AFTER] = [17, 18]

test('a commit that was noted has its stamps, and one that was announced the stamp before it', () => {
  const lastCommit = shareLastCommit()
  expect(stampsOf(lastCommit)).toEqual([NO_STAMP, NO_STAMP])

  announceCommit(lastCommit, BEFORE)
  expect(stampsOf(lastCommit)).toEqual([BEFORE, NO_STAMP])

  noteCommit(lastCommit, BEFORE, AFTER)
  expect(stampsOf(lastCommit)).toEqual([BEFORE, AFTER])
  expect(awaitStamps(lastCommit, BEFORE)).toEqual([BEFORE, AFTER])
})

test('a note that another thread is about to make is waited for, until it is made', async () => {
  const lastCommit = shareLastCommit()
  using thread = openNoter()
  await thread.isReady
  const waitsMs: number[] = []
  let inTime = 0

  for (let commit = BEFORE; commit < BEFORE + COMMITS; commit++) {
    announceCommit(lastCommit, commit)
    thread.note(lastCommit, commit, commit + 1)
    const startMs = performance.now()
    if (awaitStamps(lastCommit, commit)[1] === commit + 1) inTime++
    waitsMs.push(performance.now() - startMs)
    // One that the system has held up.
    while (lastCommit.note[0] !== NOTE.MADE) await Bun.sleep(1)
    expect(stampsOf(lastCommit)).toEqual([commit, commit + 1])
  }

  expect(inTime).toBeGreaterThan(COMMITS / 2)
  expect(waitsMs.sort((a, b) => a - b)[COMMITS / 2]).toBeLessThan(NOTE_MAX_MS)
})

test('a note that does not come is waited for once, and not for long', () => {
  const lastCommit = shareLastCommit()
  announceCommit(lastCommit, BEFORE)
  const startMs = performance.now()

  for (let ask = 0; ask < ASKS; ask++) expect(awaitStamps(lastCommit, BEFORE)).toEqual([BEFORE, NO_STAMP])

  expect(performance.now() - startMs).toBeWithin(NOTE_MAX_MS / 2, (ASKS * NOTE_MAX_MS) / 2)
  expect(lastCommit.note[0]).toBe(NOTE.LATE)
})

test('a note of a commit that comes after another state than the known one is not waited for', () => {
  const lastCommit = shareLastCommit()
  announceCommit(lastCommit, AFTER)

  expect(awaitStamps(lastCommit, BEFORE)).toEqual([AFTER, NO_STAMP])
  expect(lastCommit.note[0]).toBe(NOTE.AWAITED)
})

test.skipIf(process.platform !== 'linux')(
  'a group whose commit fails has none, and nobody waits for its note',
  async () => {
    using files = makeDatabaseFolder()
    const { path } = files
    await makeDatabase(path)
    // What nobody has, and SQLite asks for when it commits.
    runSql(
      path,
      'create table missing (user_id integer references users (id) deferrable initially deferred)',
      "create trigger miss after insert on plants when new.name = 'Ivy' begin insert into missing values (-1); end",
    )
    const user = Number(queryAll(path, 'select id from users')[0]?.[0])
    const lastCommit = shareLastCommit()
    const options = { path, identity: fileIdentity(path), durability: 'full', lastCommit } as const
    const writer = openWriterHere(options, () => {})

    expect(await writer.perform([['createPlant', user, 100n, 'Fern', null]])).toBe('done')
    const [before, after] = stampsOf(lastCommit)
    expect(after).not.toBe(before)
    expect(commitMsOf(lastCommit)).toBeGreaterThan(0)
    expect(await writer.perform([['createPlant', user, 101n, 'Ivy', null]])).toMatchObject({
      failure: expect.anything(),
    })

    expect(lastCommit.note[0]).toBe(NOTE.MADE)
    expect(stampsOf(lastCommit)).toEqual([NO_STAMP, NO_STAMP])
    expect(queryAll(path, 'select count(*) from plants where id = 101')).toEqual([[0n]])
    await writer.discard()
  },
)

/** A thread that notes a commit as soon as it is told to. */
function openNoter() {
  const thread = new Worker(new URL('./note-commit.ts', import.meta.url).href)
  return {
    isReady: new Promise((resolve) => thread.addEventListener('message', resolve, { once: true })),
    note: (...args: Parameters<typeof noteCommit>) => thread.postMessage(args),
    [Symbol.dispose]: () => thread.terminate(),
  }
}
