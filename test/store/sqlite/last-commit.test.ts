import { expect, test } from 'bun:test'
import { fileIdentity } from '../../../src/store/sqlite/inspect.ts'
import {
  announceCommit,
  commitMsOf,
  noteCommit,
  shareLastCommit,
  stampsOf,
} from '../../../src/store/sqlite/last-commit.ts'
import { openWriterHere } from '../../../src/store/sqlite/writer.ts'
import { makeDatabase, makeDatabaseFolder, queryAll, runSql } from './files.ts'

/** Far more than a note is waited for. */
const LONG_MS = 1000
const [BEFORE, AFTER] = [17, 18]

test('a commit that was noted has its stamps at once, and so has one that comes after another state than the known one', () => {
  const lastCommit = shareLastCommit()
  expect(stampsOf(lastCommit, BEFORE)).toEqual([Number.NaN, Number.NaN])

  noteCommit(lastCommit, BEFORE, AFTER)
  expect(stampsOf(lastCommit, BEFORE)).toEqual([BEFORE, AFTER])

  announceCommit(lastCommit, AFTER)
  expect(stampsOf(lastCommit, BEFORE)).toEqual([AFTER, Number.NaN])
})

test('a note that another thread is about to make is waited for', async () => {
  const lastCommit = shareLastCommit()
  using thread = openNoter()
  await thread.isReady

  for (let commit = BEFORE; commit < BEFORE + 100; commit++) {
    announceCommit(lastCommit, commit)
    thread.note(lastCommit, commit, commit + 1)
    let stamps = stampsOf(lastCommit, commit)
    // A thread that was not let run for longer than a note is waited for.
    const startMs = performance.now()
    while (Number.isNaN(stamps[1]) && performance.now() < startMs + LONG_MS) stamps = stampsOf(lastCommit, commit)

    expect(stamps).toEqual([commit, commit + 1])
  }
})

test('a note that does not come is not waited for long', () => {
  const lastCommit = shareLastCommit()
  announceCommit(lastCommit, BEFORE)
  const startMs = performance.now()

  expect(stampsOf(lastCommit, BEFORE)).toEqual([BEFORE, Number.NaN])
  expect(performance.now() - startMs).toBeLessThan(LONG_MS)
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
    const [before, after] = stampsOf(lastCommit, Number.NaN)
    expect(after).not.toBe(before)
    expect(commitMsOf(lastCommit)).toBeGreaterThan(0)
    expect(await writer.perform([['createPlant', user, 101n, 'Ivy', null]])).toMatchObject({
      failure: expect.anything(),
    })

    expect(Atomics.load(lastCommit.note, 0)).toBe(0)
    expect(stampsOf(lastCommit, after)).toEqual([Number.NaN, Number.NaN])
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
