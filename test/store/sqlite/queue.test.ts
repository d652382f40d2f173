import { describe, expect, test } from 'bun:test'
import { AppError } from '../../../src/domain/error.ts'
import { QUEUE_MAX_TEXT_LENGTH, QUEUE_MAX_WRITES } from '../../../src/store/limits.ts'
import { fileIdentity } from '../../../src/store/sqlite/files/file-system.ts'
import { shareChanges } from '../../../src/store/sqlite/versions.ts'
import { QUEUE_MAX_WAIT_MS, queueWrites } from '../../../src/store/sqlite/writing/queue.ts'
import { openWriterHere } from '../../../src/store/sqlite/writing/writer.ts'
import { FERN, listIds } from '../fixtures.ts'
import { openWithUser, queryAll } from './files.ts'

/** 16 of these texts have the length that may wait. */
const TEXT = 'x'.repeat(QUEUE_MAX_TEXT_LENGTH / 16)

describe('writes that wait', () => {
  test('can be QUEUE_MAX_WRITES, and one more is refused and not stored', async () => {
    await using opened = await openWithUser({ isServer: true })
    const { store, user, path } = opened

    const outcomes = await outcomesOf(
      Array.from({ length: QUEUE_MAX_WRITES + 1 }, (_, id) =>
        store.createPlant(user, { id: BigInt(id), name: 'Fern' }),
      ),
    )

    expect(QUEUE_MAX_WRITES).toBe(16384)
    expect(outcomes).toEqual([...Array(QUEUE_MAX_WRITES).fill('done'), BUSY])
    expect(queryAll(path, 'select count(*), max(id) from plants')).toEqual([[16384n, 16383n]])
    await store.createPlant(user, { id: 16384n, name: 'Fern' })
    expect(queryAll(path, 'select count(*), max(id) from plants')).toEqual([[16385n, 16384n]])
  })

  test('can have QUEUE_MAX_TEXT_LENGTH characters, and one more is refused and not stored', async () => {
    await using opened = await openWithUser({ isServer: true })
    const { store, user } = opened

    const writes = Array.from({ length: 16 }, (_, id) =>
      store.createPlant(user, { id: BigInt(id), name: TEXT.slice(1), tag: 'x' }),
    )
    writes.push(
      store.createPlant(user, { id: 16n, name: 'x' }),
      store.createPlant(user, { id: 17n, name: '', tag: 'x' }),
      // A write without text needs no room for text.
      store.createPlant(user, { id: 18n, name: '' }),
      store.deletePlant(user, 18n),
    )

    expect(QUEUE_MAX_TEXT_LENGTH).toBe(16 * 1024 * 1024)
    expect(await outcomesOf(writes)).toEqual([...Array(16).fill('done'), BUSY, BUSY, 'done', 'done'])
    await store.createPlant(user, { id: 16n, name: 'x' })
    expect(await listIds(store, user)).toEqual(Array.from({ length: 17 }, (_, id) => BigInt(id)))
  })

  test('can be a single write with more text, which is refused beside others', async () => {
    await using opened = await openWithUser({ isServer: true })
    const { store, user } = opened
    const name = 'x'.repeat(QUEUE_MAX_TEXT_LENGTH + 1)

    const alone = [store.createPlant(user, { id: 1n, name }), store.createPlant(user, { id: 2n, name: 'x' })]
    expect(await outcomesOf(alone)).toEqual(['done', BUSY])
    const beside = [store.createPlant(user, { id: 4n, name: 'x' }), store.createPlant(user, { id: 5n, name })]
    expect(await outcomesOf(beside)).toEqual(['done', BUSY])

    expect(await listIds(store, user)).toEqual([1n, 4n])
  })

  test('are refused when the store is closed, and not stored', async () => {
    await using opened = await openWithUser({ isServer: true })
    const { store, user, path } = opened

    const waiting = [1n, 2n].map((id) => store.createPlant(user, { id, name: 'Fern' }))
    const closing = store.close()
    waiting.push(store.createPlant(user, { id: 3n, name: 'Fern' }))

    expect(await outcomesOf(waiting)).toEqual([BUSY, BUSY, BUSY])
    await closing
    expect(await outcomesOf([store.createPlant(user, { id: 4n, name: 'Fern' })])).toEqual([BUSY])
    expect(queryAll(path, 'select id from plants')).toEqual([])
  })

  test('are stored exactly if they were answered with success, when the store is closed among many of them', async () => {
    await using opened = await openWithUser({ isServer: true })
    const { store, user, path } = opened
    const answered = Promise.withResolvers<void>()

    const writes = Array.from({ length: 2000 }, (_, id) => {
      const write = store.createPlant(user, { id: BigInt(id), name: 'Fern' })
      write.then(answered.resolve, () => {})
      return write
    })
    await answered.promise
    await store.close()

    const outcomes = await outcomesOf(writes)
    expect(outcomes.filter((outcome) => outcome !== 'done' && outcome !== BUSY)).toEqual([])
    const done = outcomes.flatMap((outcome, id) => (outcome === 'done' ? [[BigInt(id)]] : []))
    expect(done.length).toBeGreaterThan(0)
    expect(done.length).toBeLessThan(outcomes.length)
    expect(queryAll(path, 'select id from plants order by id')).toEqual(done)
  })
})

/** The time of a group on a slow disk, and the number of its writes. */
const SLOW_GROUP_MS = 100
const GROUP_WRITES = 512

test('the queue takes as many writes as a slow disk commits in QUEUE_MAX_WAIT_MS, and all again once it is fast', async () => {
  await using opened = await openWithUser()
  const { user, path } = opened
  const options = { path, identity: fileIdentity(path), durability: 'full', ...shared() } as const
  const writer = openWriterHere(options, () => {})
  let groupMs = SLOW_GROUP_MS
  let nowMs = 0
  const queue = queueWrites({
    writer: {
      async perform(calls, atMs) {
        nowMs += groupMs
        return writer.perform(calls, atMs)
      },
    },
    onFailure: failTest,
    monotonicMs: () => nowMs,
  })
  let id = 0n
  const create = (count: number) =>
    outcomesOf(Array.from({ length: count }, () => queue.write(['createPlant', user, id++, ...FERN])))

  // The queue has no estimate yet.
  const first = await create(GROUP_WRITES)
  const slow = await create(QUEUE_MAX_WRITES)
  groupMs = 0
  for (let group = 0; group < 20; group++) await create(GROUP_WRITES)
  const fast = await create(QUEUE_MAX_WRITES)
  await writer.close()

  expect(QUEUE_MAX_WAIT_MS).toBe(500)
  expect(new Set(first)).toEqual(new Set(['done']))
  const waited = (QUEUE_MAX_WAIT_MS / SLOW_GROUP_MS) * GROUP_WRITES + 1
  expect(slow).toEqual([...Array(waited).fill('done'), ...Array(slow.length - waited).fill(BUSY)])
  expect(new Set(fast)).toEqual(new Set(['done']))
})

const BUSY = 'store_busy'

const failTest = (error: unknown): never => {
  throw error
}

/** The outcome of each write. A refusal by the queue has a known outcome. */
async function outcomesOf(writes: readonly Promise<unknown>[]): Promise<string[]> {
  const results = await Promise.allSettled(writes)
  return results.map((result) => {
    if (result.status === 'fulfilled') return 'done'
    if (!(result.reason instanceof AppError) || result.reason.outcomeIsUnknown) throw result.reason
    return result.reason.kind
  })
}

/** What a writer shares with the thread that reads. */
const shared = () => ({
  changes: shareChanges(0),
  times: new Float64Array(new SharedArrayBuffer(2 * Float64Array.BYTES_PER_ELEMENT)),
})
