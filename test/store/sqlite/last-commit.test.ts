import { expect, test } from 'bun:test'
import { fileIdentity } from '../../../src/store/sqlite/files/file-identity.ts'
import {
  announceCommit,
  awaitVersions,
  COMMIT_STATE,
  commitMsOf,
  RECORD_WAIT_MAX_MS,
  recordCommit,
  shareLastCommit,
  UNKNOWN_VERSION,
  versionsOf,
} from '../../../src/store/sqlite/versions/last-commit.ts'
import { openWriterHere } from '../../../src/store/sqlite/writing/writer-here.ts'
import { makeDatabase, makeDatabaseFolder, queryAll, runSql } from './files.ts'

/** How often the test asks for a record that does not come. To wait each time would take a second. */
const ASKS = 500
const COMMITS = 100
const [BEFORE, AFTER] = [17, 18]

test('a recorded commit has the versions around it, an announced one only the version before it', () => {
  const lastCommit = shareLastCommit()
  expect(versionsOf(lastCommit)).toEqual([UNKNOWN_VERSION, UNKNOWN_VERSION])

  announceCommit(lastCommit, BEFORE)
  expect(versionsOf(lastCommit)).toEqual([BEFORE, UNKNOWN_VERSION])

  recordCommit(lastCommit, BEFORE, AFTER)
  expect(versionsOf(lastCommit)).toEqual([BEFORE, AFTER])
  expect(awaitVersions(lastCommit, BEFORE)).toEqual([BEFORE, AFTER])
})

test('the reader waits for a record that another thread is about to make', async () => {
  const lastCommit = shareLastCommit()
  using thread = openRecorder()
  await thread.isReady
  const waitsMs: number[] = []
  let inTime = 0

  for (let commit = BEFORE; commit < BEFORE + COMMITS; commit++) {
    announceCommit(lastCommit, commit)
    thread.record(lastCommit, commit, commit + 1)
    const startMs = performance.now()
    if (awaitVersions(lastCommit, commit)[1] === commit + 1) inTime++
    waitsMs.push(performance.now() - startMs)
    // One that the system has held up.
    while (lastCommit.state[0] !== COMMIT_STATE.RECORDED) await Bun.sleep(1)
    expect(versionsOf(lastCommit)).toEqual([commit, commit + 1])
  }

  expect(inTime).toBeGreaterThan(COMMITS / 2)
  expect(waitsMs.sort((a, b) => a - b)[COMMITS / 2]).toBeLessThan(RECORD_WAIT_MAX_MS)
})

test('the reader waits once, and not for long, for a record that does not come', () => {
  const lastCommit = shareLastCommit()
  announceCommit(lastCommit, BEFORE)
  const startMs = performance.now()

  for (let ask = 0; ask < ASKS; ask++) expect(awaitVersions(lastCommit, BEFORE)).toEqual([BEFORE, UNKNOWN_VERSION])

  expect(performance.now() - startMs).toBeWithin(RECORD_WAIT_MAX_MS / 2, (ASKS * RECORD_WAIT_MAX_MS) / 2)
  expect(lastCommit.state[0]).toBe(COMMIT_STATE.LATE)
})

test('the reader does not wait for the record of a commit that follows another version than the known one', () => {
  const lastCommit = shareLastCommit()
  announceCommit(lastCommit, AFTER)

  expect(awaitVersions(lastCommit, BEFORE)).toEqual([AFTER, UNKNOWN_VERSION])
  expect(lastCommit.state[0]).toBe(COMMIT_STATE.ANNOUNCED)
})

test.skipIf(process.platform !== 'linux')(
  'a group whose commit fails has no versions, and no reader waits for them',
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
    const [before, after] = versionsOf(lastCommit)
    expect(after).not.toBe(before)
    expect(commitMsOf(lastCommit)).toBeGreaterThan(0)
    expect(await writer.perform([['createPlant', user, 101n, 'Ivy', null]])).toMatchObject({
      failure: expect.anything(),
    })

    expect(lastCommit.state[0]).toBe(COMMIT_STATE.RECORDED)
    expect(versionsOf(lastCommit)).toEqual([UNKNOWN_VERSION, UNKNOWN_VERSION])
    expect(queryAll(path, 'select count(*) from plants where id = 101')).toEqual([[0n]])
    await writer.discard()
  },
)

/** A thread that records a commit as soon as it gets one. */
function openRecorder() {
  const thread = new Worker(new URL('./record-commit.ts', import.meta.url).href)
  return {
    isReady: new Promise((resolve) => thread.addEventListener('message', resolve, { once: true })),
    record: (...args: Parameters<typeof recordCommit>) => thread.postMessage(args),
    [Symbol.dispose]: () => thread.terminate(),
  }
}
