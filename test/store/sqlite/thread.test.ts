import { Database } from 'bun:sqlite'
import { describe, expect, test } from 'bun:test'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import type { AppError } from '../../../src/domain/error.ts'
import { nextTurn } from '../../../src/domain/next-turn.ts'
import { openStore } from '../../../src/store/open.ts'
import { fileIdentity } from '../../../src/store/sqlite/files/file-identity.ts'
import type { CheckpointReport } from '../../../src/store/sqlite/group-result.ts'
import { shareLastCommit } from '../../../src/store/sqlite/versions/last-commit.ts'
import { openWriterInThread } from '../../../src/store/sqlite/writer-in-thread.ts'
import { rejectionOf } from '../../support/rejection.ts'
import { createUser, listIds, newToken } from '../fixtures.ts'
import { makeDatabase, makeDatabaseFolder } from './files.ts'
import { ENDS, watchThreads } from './threads.ts'

/** More than are committed together. */
const MANY = 1000
/** So long it is looked again and again what has changed, in each turn of the event loop. */
const LOOK_MS = 1

describe('a store that a thread writes', () => {
  test('is read while a write waits for the lock of another process, and the write is done after it', async () => {
    await using opened = await openWithPlant()
    const { store, user, path } = opened
    using locker = new Database(path)
    locker.run('begin immediate')
    let isAnswered = false

    const creating = store.createPlant(user, { id: 2n, name: 'Ivy' }).finally(() => {
      isAnswered = true
    })
    for (let reads = 0; reads < 50; reads++) {
      expect([await listIds(store, user), isAnswered]).toEqual([[1n], false])
      await nextTurn()
    }
    locker.run('rollback')
    await creating

    expect(await listIds(store, user)).toEqual([1n, 2n])
  })

  test('ends its thread when it is closed, and leaves one file', async () => {
    using threads = watchThreads()
    await using opened = await openWithPlant()

    await opened.store.close()

    expect(await threads.allClosed()).toBe(1)
    expect(readdirSync(opened.folder)).toEqual(['plantstore.db'])
    expect(opened.failures).toEqual([])
  })

  test('ends whatever it has started when it is closed before anything was written', async () => {
    using threads = watchThreads()
    using files = makeDatabaseFolder()
    await makeDatabase(files.path)

    const store = await openStore(files.path, failTest, { writesInThread: true })
    await store.close()

    expect(await threads.allClosed()).toBeLessThanOrEqual(1)
    expect(readdirSync(files.folder)).toEqual(['plantstore.db'])
  })
})

describe.each(Object.entries(ENDS))('a thread that %s', (_, end) => {
  test('leaves what it was sent in doubt, and no further write is begun: that is told once', async () => {
    using threads = watchThreads()
    await using opened = await openWithPlant()
    const { store, user, failures } = opened

    threads.endAt('before', end)
    const results = await Promise.allSettled(
      Array.from({ length: MANY }, (_, id) => store.createPlant(user, { id: BigInt(id + 2), name: 'Ivy' })),
    )

    expect(threads.hasEnded()).toBe(true)
    const reasons = results.map((result) => (result.status === 'rejected' ? result.reason : undefined))
    expect(reasons.filter((reason) => reason?.kind !== 'store_failed')).toEqual([])
    const inDoubt = reasons.findIndex(({ outcomeIsUnknown }) => !outcomeIsUnknown)
    expect(inDoubt).toBeGreaterThan(0)
    expect(reasons.slice(inDoubt).filter(({ outcomeIsUnknown }) => outcomeIsUnknown)).toEqual([])
    for (const write of [
      store.deletePlant(user, 1n),
      store.createToken(newToken('you')),
      store.touchTokens(new Map([[1, 1]])),
      store.checkReady(),
    ]) {
      expect(await rejectionOf(write)).toMatchObject({ kind: 'store_failed', outcomeIsUnknown: false })
    }
    expect(failures.map(({ kind, cause }) => [kind, String(cause)])).toEqual([
      ['store_failed', expect.stringContaining('the thread that writes has ')],
    ])
    expect(await listIds(store, user)).toContain(1n)
  })

  test('can be closed, and the next opening has what was answered', async () => {
    using threads = watchThreads()
    await using opened = await openWithPlant()
    const { store, user, failures, path } = opened

    threads.endAt('before', end)
    await rejectionOf(store.createPlant(user, { id: 2n, name: 'Ivy' }))
    expect(threads.hasEnded()).toBe(true)
    await store.close()
    await threads.allClosed()

    const again = await openStore(path, failTest, { writesInThread: true })
    await again.createPlant(user, { id: 3n, name: 'Moss' })
    expect((await listIds(again, user)).filter((id) => id !== 2n)).toEqual([1n, 3n])
    await again.close()
    expect(failures).toHaveLength(1)
  })
})

test('a thread that ends after an answer fails the store all the same, and the answer holds', async () => {
  using threads = watchThreads()
  await using opened = await openWithPlant()
  const { store, user, failures } = opened

  threads.endAt('after', ENDS['meets an error that nobody catches'] ?? (() => {}))
  await store.createPlant(user, { id: 2n, name: 'Ivy' })
  while (failures.length === 0) await nextTurn()

  expect(threads.hasEnded()).toBe(true)
  const late = store.createPlant(user, { id: 3n, name: 'Moss' })
  expect(await rejectionOf(late)).toMatchObject({ kind: 'store_failed', outcomeIsUnknown: false })
  expect(await listIds(store, user)).toEqual([1n, 2n])
  expect(failures).toHaveLength(1)
})

test.each([
  ['a directory', (folder: string) => folder],
  ['a file in no directory', (folder: string) => join(folder, 'nowhere', 'plantstore.db')],
])(
  'a thread that cannot open its database, because it is %s, says so once and rejects what waits',
  async (_, pathIn) => {
    using threads = watchThreads()
    using files = makeDatabaseFolder()
    const path = pathIn(files.folder)
    const reports: CheckpointReport[] = []
    const options = { path, identity: fileIdentity(path), durability: 'full', lastCommit: shareLastCommit() } as const

    const writer = openWriterInThread(options, (report) => reports.push(report))
    const waiting = [writer.perform([['createPlant', 1, 1n, 'Fern', null]]), writer.truncate()]

    for (const each of waiting) expect(await rejectionOf(each)).toBeInstanceOf(Error)
    expect(await rejectionOf(writer.perform([['deletePlant', 1, 1n]]))).toBeInstanceOf(Error)
    await writer.discard()
    await threads.allClosed()
    const reason = expect.stringContaining('unable to open database file')
    expect(reports).toEqual([{ failure: { kind: 'store_failed', outcomeIsUnknown: false, reason } }])
  },
)

test('a thread that cannot open its database can be closed while it starts', async () => {
  using threads = watchThreads()
  using files = makeDatabaseFolder()
  const options = { path: files.folder, identity: fileIdentity(files.folder), durability: 'full' } as const
  const reports: CheckpointReport[] = []

  const writer = openWriterInThread({ ...options, lastCommit: shareLastCommit() }, (report) => reports.push(report))
  const waiting = rejectionOf(writer.perform([['createPlant', 1, 1n, 'Fern', null]]))

  expect(await writer.close()).toBeUndefined()
  expect(await waiting).toBeInstanceOf(Error)
  await threads.allClosed()
  expect(reports).toHaveLength(1)
})

test.skipIf(process.platform !== 'linux')(
  'a commit is never missed by who asks for the version again and again while it is made',
  async () => {
    await using opened = await openWithPlant()
    const { store, user } = opened
    const late: bigint[] = []

    for (let id = 2n; id < 100n; id++) {
      const before = store.plantsVersion(user)
      const tokens = store.tokensVersion()
      let isAnswered = false
      const creating = store.createPlant(user, { id, name: 'Ivy' }).finally(() => {
        isAnswered = true
      })
      while (!isAnswered) {
        const untilMs = performance.now() + LOOK_MS
        while (performance.now() < untilMs) store.plantsVersion(user)
        await nextTurn()
      }
      await creating
      if (store.plantsVersion(user) === before) late.push(id)
      expect(store.tokensVersion()).toBe(tokens)
    }

    expect(late).toEqual([])
  },
)

/** A store with user `me`, who has plant 1. */
async function openWithPlant() {
  const files = makeDatabaseFolder()
  const failures: AppError[] = []
  const store = await openStore(files.path, (failure) => failures.push(failure), { writesInThread: true })
  const user = await createUser(store, 'me')
  await store.createPlant(user, { id: 1n, name: 'Fern' })
  return {
    store,
    user,
    failures,
    path: files.path,
    folder: files.folder,
    async [Symbol.asyncDispose]() {
      await store.close()
      files[Symbol.dispose]()
    },
  }
}

const failTest = (error: AppError): never => {
  throw error
}
