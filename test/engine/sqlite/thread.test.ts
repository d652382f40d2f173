import { describe, expect, test } from 'bun:test'
import { readdirSync } from 'node:fs'
import { OTHERS_SEEN_WITHIN_MS } from '../../../src/domain/store.ts'
import { fileIdentity } from '../../../src/engine/sqlite/files/file-system.ts'
import { shareChanges, shareCheckTime } from '../../../src/engine/sqlite/versions.ts'
import { createWriteQueue, useThread } from '../../../src/engine/sqlite/writer.ts'
import type { Writes } from '../../../src/store/sqlite/writing/writes.ts'
import { asObject, FERN, listIds, newToken, rejectionOf } from '../../store/fixtures.ts'
import { makeDatabase, makeDatabaseFolder, openForTest, openWithUser } from '../../store/sqlite/files.ts'
import { until } from '../../support/until.ts'
import { ENDS, watchThreads } from './threads.ts'

/** More writes than fit in a group. */
const MANY = 1000
/** How long the reader asks for the version in each turn of the event loop. */
const LOOK_MS = 1

describe('a store that writes in a thread', () => {
  test('ends its thread when it closes, and leaves one file', async () => {
    using threads = watchThreads()
    await using opened = await openWithPlant()

    await opened.close()

    expect(await threads.allClosed()).toBe(1)
    expect(readdirSync(opened.folder)).toEqual(['plantstore.db'])
    expect(opened.failures).toEqual([])
  })

  test('ends its thread also if it closes before the first write', async () => {
    using threads = watchThreads()
    using files = makeDatabaseFolder()
    await makeDatabase(files.path)

    const { close } = await openForTest(files.path, { isServer: true })
    await close()

    expect(await threads.allClosed()).toBeLessThanOrEqual(1)
    expect(readdirSync(files.folder)).toEqual(['plantstore.db'])
  })
})

describe.each(Object.entries(ENDS))('a thread that %s', (_, end) => {
  test('leaves the outcome of its group unknown, no further write begins, and the next opening has all answered plants', async () => {
    using threads = watchThreads()
    await using opened = await openWithPlant()
    const { store, user, failures, path } = opened
    const ids = Array.from({ length: MANY }, (_, id) => BigInt(id + 2))

    threads.endAtNextGroup(end)
    const reasons = await Promise.all(ids.map((id) => rejectionOf(store.createPlant(user, { id, name: 'Ivy' }))))

    expect(threads.hasEnded()).toBe(true)
    const inDoubt = reasons.findIndex(({ outcomeIsUnknown }) => outcomeIsUnknown === false)
    expect(inDoubt).toBeGreaterThan(0)
    const failed = (outcomeIsUnknown: boolean) => expect.objectContaining({ kind: 'store_failed', outcomeIsUnknown })
    expect(reasons).toEqual(ids.map((_, index) => failed(index < inDoubt)))
    for (const write of [
      store.deletePlant(user, 1n),
      store.createTokens([newToken('you')]),
      store.touchTokens(new Map([[1, 1]]), 1),
      store.checkReady(),
    ]) {
      expect(await rejectionOf(write)).toEqual(failed(false))
    }
    expect(failures.map(({ kind, cause }) => [kind, String(cause)])).toEqual([
      ['store_failed', expect.stringContaining('the thread that writes has ')],
    ])
    await opened.close()
    await threads.allClosed()
    await using again = await openForTest(path, { isServer: true })
    await again.store.createPlant(user, { id: BigInt(MANY + 2), name: 'Moss' })
    const stored = (await listIds(again.store, user)).filter((id) => !ids.slice(0, inDoubt).includes(id))
    expect(stored).toEqual([1n, BigInt(MANY + 2)])
  })
})

test('a thread that ends after an answer fails the store, and the answer holds', async () => {
  using threads = watchThreads()
  await using opened = await openWithPlant()
  const { store, user, failures } = opened

  await store.createPlant(user, { id: 2n, name: 'Ivy' })
  threads.end(ENDS['meets an error that nobody catches'] ?? (() => {}))
  await until('the end is told', (see) => see(failures).length > 0)

  expect(threads.hasEnded()).toBe(true)
  const late = store.createPlant(user, { id: 3n, name: 'Moss' })
  expect(await rejectionOf(late)).toMatchObject({ kind: 'store_failed', outcomeIsUnknown: false })
  expect(await listIds(store, user)).toEqual([1n, 2n])
  expect(failures).toHaveLength(1)
})

test('a thread that cannot open its database reports it and rejects the waiting groups', async () => {
  using threads = watchThreads()
  using files = makeDatabaseFolder()
  const { writer, failures } = openThread(files.folder)
  const waiting = [writer.write(['createPlant', 1, '1', ...FERN]), writer.emptyWal()]

  for (const each of waiting) expect(await rejectionOf(each)).toMatchObject({ kind: 'store_failed' })
  expect(await rejectionOf(writer.emptyWal())).toMatchObject({ kind: 'store_failed' })
  await writer.end('discard')
  await threads.allClosed()
  const cause = expect.stringContaining('unable to open database file')
  expect(failures[0]).toMatchObject({ kind: 'store_failed', outcomeIsUnknown: false, cause })
})

test('a thread that cannot open its database can be closed while it starts', async () => {
  using threads = watchThreads()
  using files = makeDatabaseFolder()
  const { writer, failures } = openThread(files.folder)
  const waiting = rejectionOf(writer.emptyWal())

  expect(await writer.end('close')).toBeUndefined()
  expect(await waiting).toMatchObject({ kind: 'store_failed' })
  await threads.allClosed()
  expect(failures).toHaveLength(1)
})

test.skipIf(process.platform !== 'linux')(
  'a reader that asks for the version again and again during commits misses none of them',
  async () => {
    await using opened = await openWithPlant()
    const { store, user } = opened
    const late: bigint[] = []

    for (let id = 2n; id < 100n; id++) {
      const before = store.plantsVersion(user)
      let isAnswered = false
      const creating = store.createPlant(user, { id, name: 'Ivy' }).finally(() => {
        isAnswered = true
      })
      const look = () => {
        const untilMs = performance.now() + LOOK_MS
        while (performance.now() < untilMs) store.plantsVersion(user)
        return isAnswered
      }
      await until('the create is answered', look, { lookMs: 0 })
      await creating
      if (before !== undefined && store.plantsVersion(user) === before) late.push(id)
    }

    expect(late).toEqual([])
  },
)

/** A store with user `me`, who has plant 1. */
async function openWithPlant() {
  const opened = await openWithUser({ isServer: true })
  await opened.store.createPlant(opened.user, { id: 1n, name: 'Fern' })
  return opened
}

/** A writer with a thread, and the failures that it reported. */
function openThread(path: string) {
  const failures: unknown[] = []
  const onFailure = (error: unknown) => void failures.push(asObject(error))
  const options = {
    path,
    identity: fileIdentity(path),
    durability: 'full',
    settings: {},
    changes: shareChanges(),
  } as const
  const thread = new Worker(new URL('../../../src/store/sqlite/writer-thread.ts', import.meta.url).href)
  const { open } = useThread(thread, { ...options, checkedAtMs: shareCheckTime() })
  const times = { monotonicMs: () => 0, othersSeenWithinMs: OTHERS_SEEN_WITHIN_MS }
  const writer = createWriteQueue<Writes>({ open, ...times, onFailure, onEvent() {} })
  return { writer, failures }
}
