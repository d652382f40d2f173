import { expect, test } from 'bun:test'
import { join } from 'node:path'
import { sleepSync } from 'bun'
import { fileIdentity } from '../../../src/engine/sqlite/files/file-system.ts'
import { makeDatabase } from '../../../src/engine/sqlite/files/new-database.ts'
import type { CommittedGroup, FromWriter, ToWriter } from '../../../src/engine/sqlite/messages.ts'
import { migrate } from '../../../src/engine/sqlite/migrate.ts'
import { shareChanges, shareCheckTime } from '../../../src/engine/sqlite/versions.ts'
import { joinThread, useThread } from '../../../src/engine/sqlite/writer.ts'
import { makeFolder } from '../../support/folder.ts'
import { until } from '../../support/until.ts'
import { COUNTERS_FORMAT } from '../toy/counters.ts'

const TRIES = 5
/** How long a commit waits for other threads at most. */
const WAIT_MAX_MS = 20
const SLOW_MS = 5 * WAIT_MAX_MS

test('a commit has the writes of all threads that wrote in the last one, also if one looks for commits of others meanwhile', async () => {
  await using thread = await startThread()
  const { first, second } = thread
  const sizes: number[][] = []

  await until('the second thread has written in time, again and again', async () => {
    await thread.shareSlowCommit()
    first.look()
    // A look that comes with a group is no look of its own.
    sleepSync(5)
    const startMs = performance.now()
    const written = [first.write()]
    // By now the thread that writes has taken the first group, and waits.
    sleepSync(5)
    written.push(second.write())
    const isInTime = performance.now() - startMs < WAIT_MAX_MS
    const answers = await Promise.all(written)
    return isInTime && sizes.push(answers) === TRIES
  })

  expect(sizes).toEqual(new Array(TRIES).fill([2, 0]))
})

test('a commit waits 20 ms at most for a thread that has nothing more to write, and the next one not at all', async () => {
  await using thread = await startThread()
  const writeMs = async () => {
    const startMs = performance.now()
    await thread.first.write()
    return performance.now() - startMs
  }
  let hasWaited = false
  let hasNotWaited = false

  // A busy machine adds to most of the times.
  await until('one commit waits for the right time, and one not at all', async () => {
    await thread.shareSlowCommit()
    const waitedMs = await writeMs()
    expect(waitedMs).toBeGreaterThanOrEqual(WAIT_MAX_MS)
    hasWaited ||= waitedMs < 2 * WAIT_MAX_MS
    await thread.first.write(SLOW_MS)
    hasNotWaited ||= (await writeMs()) < WAIT_MAX_MS
    return hasWaited && hasNotWaited
  })
})

/** A thread that writes, for two threads that this one plays. */
async function startThread() {
  const folder = makeFolder()
  const path = join(folder.path, 'counters.db')
  makeDatabase(path, (db) => migrate(db, path, COUNTERS_FORMAT))
  const identity = fileIdentity(path) ?? ''
  const changes = shareChanges()
  const worker = new Worker(new URL('../toy/thread.ts', import.meta.url).href)
  const options = { path, identity, durability: 'full', settings: undefined, changes } as const
  const thread = useThread(worker, { ...options, checkedAtMs: shareCheckTime() })
  const first = play(thread.open)
  await first.answer()
  const second = play(joinThread({ path, identity, changes, ...thread.addLink() }))
  await second.answer()
  return {
    first,
    second,
    /** Has both write in one slow commit. */
    shareSlowCommit: () =>
      until('both share a slow commit', async (see) => {
        // The others come while this group is written, or while the thread waits for them.
        const before = first.write(SLOW_MS)
        sleepSync(2)
        const sizes = await Promise.all([second.write(), first.write(SLOW_MS), before])
        return see(sizes)[0] !== 1 && sizes[1] !== 1
      }),
    async [Symbol.asyncDispose]() {
      first.stop()
      second.stop()
      folder[Symbol.dispose]()
    },
  }
}

type Opened = ReturnType<typeof useThread>['open']

/** A thread that has writes. */
function play(open: Opened) {
  const answers: ((answer: FromWriter) => void)[] = []
  const receive = (answer: FromWriter) => answers.shift()?.(answer)
  // A thread that ends too early answers nothing, so the test ends at its limit.
  const { post, stop } = open(receive, () => {})
  const send = (message: ToWriter) => post(JSON.stringify(message))
  const answer = () => new Promise<FromWriter>((resolve) => answers.push(resolve))
  return {
    stop,
    answer,
    look: () => send({ checkOthersAtMs: 1 }),
    /** Asks for a write that takes so long. Resolves to the number of writes of its commit, or to 0 if another thread was told. */
    async write(pauseMs = 0): Promise<number> {
      const answered = answer()
      send({ group: [['pause', 1, pauseMs]], nowMs: 1 })
      return ((await answered) as CommittedGroup).commit?.writes ?? 0
    },
  }
}
