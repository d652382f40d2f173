import { Database } from 'bun:sqlite'
import { describe, expect, test } from 'bun:test'
import { statSync } from 'node:fs'
import type { WriteRefusal } from '../../../src/domain/statistics.ts'
import { QUEUE_MAX_WRITES } from '../../../src/store/limits.ts'
import { openStore } from '../../../src/store/open.ts'
import { createUser } from '../fixtures.ts'
import { makeDatabaseFolder, WAL } from './files.ts'

const WRITERS = [
  { name: 'in this thread', writesInThread: false },
  { name: 'in a thread of its own', writesInThread: true },
]

async function openObserved(writesInThread: boolean) {
  const files = makeDatabaseFolder()
  const groups: { readonly writes: number; readonly syncMs: number }[] = []
  const refusals: WriteRefusal[] = []
  const store = await openStore(files.path, failTest, {
    writesInThread,
    observer: {
      recordGroup: (writes, syncMs) => groups.push({ writes, syncMs }),
      recordRefusal: (reason) => refusals.push(reason),
    },
  })
  return {
    ...{ store, groups, refusals, path: files.path },
    async [Symbol.asyncDispose]() {
      await store.close()
      files[Symbol.dispose]()
    },
  }
}

describe.each(WRITERS)('what is told of writes $name', ({ writesInThread }) => {
  test('is each group that was committed, with its writes and a time, whatever became of them', async () => {
    await using opened = await openObserved(writesInThread)
    const { store, groups, refusals } = opened
    const user = await createUser(store, 'me')
    groups.length = 0
    const startMs = performance.now()
    const creates = [1n, 2n, 3n, 3n].map((id) => store.createPlant(user, { id, name: 'Fern' }))
    await Promise.allSettled(creates)
    await store.deletePlant(user, 1n)
    const tookMs = performance.now() - startMs

    expect(groups.map(({ writes }) => writes)).toEqual([4, 1])
    for (const { syncMs } of groups) expect(syncMs).toBeWithin(0.001, tookMs)
    expect(refusals).toEqual([])
  })

  test('is each write that found the queue full', async () => {
    await using opened = await openObserved(writesInThread)
    const { store, groups, refusals } = opened
    const user = await createUser(store, 'me')
    groups.length = 0
    await Promise.allSettled(
      Array.from({ length: QUEUE_MAX_WRITES + 2 }, (_, id) => store.createPlant(user, { id: BigInt(id), name: '' })),
    )

    expect(refusals).toEqual(['queue_full', 'queue_full'])
    expect(groups.reduce((sum, { writes }) => sum + writes, 0)).toBe(QUEUE_MAX_WRITES)
  })

  test('is each write that another process kept from the database', async () => {
    await using opened = await openObserved(writesInThread)
    const { store, groups, refusals, path } = opened
    const user = await createUser(store, 'me')
    groups.length = 0
    using _lock = lock(path)
    const outcomes = await Promise.allSettled([1n, 2n].map((id) => store.createPlant(user, { id, name: 'Fern' })))

    expect(outcomes.map(({ status }) => status)).toEqual(['rejected', 'rejected'])
    expect({ groups, refusals }).toEqual({ groups: [], refusals: ['locked', 'locked'] })
  })
})

describe('the sizes', () => {
  test('are those of the files', async () => {
    await using opened = await openObserved(true)
    await createUser(opened.store, 'me')

    expect(await opened.store.sizes()).toEqual({
      databaseBytes: statSync(opened.path).size,
      walBytes: statSync(opened.path + WAL).size,
    })
  })
})

/** Holds the lock for writing as another program would. */
function lock(path: string) {
  const db = new Database(path)
  db.run('begin immediate')
  return { [Symbol.dispose]: () => db.close(true) }
}

const failTest = (error: Error): never => {
  throw error
}
