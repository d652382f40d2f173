import { Database } from 'bun:sqlite'
import { describe, expect, test } from 'bun:test'
import { statSync } from 'node:fs'
import type { StoreObserver } from '../../../src/domain/store.ts'
import { QUEUE_MAX_WRITES } from '../../../src/store/limits.ts'
import { openWithUser, WAL } from './files.ts'

const WRITERS = [
  { name: 'in this thread', isServer: false },
  { name: 'in a thread of its own', isServer: true },
]

async function openObserved(isServer: boolean) {
  const groups: { readonly writes: number; readonly syncMs: number }[] = []
  const refusals: string[] = []
  const observer: StoreObserver = {
    recordGroup: (writes, syncMs) => groups.push({ writes, syncMs }),
    recordRefusal: (reason) => refusals.push(reason),
  }
  const opened = await openWithUser({ isServer, observer })
  // Without the group that created the user.
  groups.length = 0
  return { ...opened, groups, refusals }
}

describe.each(WRITERS)('the observer of a store that writes $name', ({ isServer }) => {
  test('gets the number of writes, refused ones included, and the time of each group', async () => {
    await using opened = await openObserved(isServer)
    const { store, user, groups, refusals } = opened
    const startMs = performance.now()
    const creates = [1n, 2n, 3n, 3n].map((id) => store.createPlant(user, { id, name: 'Fern' }))
    await Promise.allSettled(creates)
    await store.deletePlant(user, 1n)
    const tookMs = performance.now() - startMs

    expect(groups.map(({ writes }) => writes)).toEqual([4, 1])
    for (const { syncMs } of groups) expect(syncMs).toBeWithin(0.001, tookMs)
    expect(refusals).toEqual([])
  })

  test('gets each write that the full queue refused', async () => {
    await using opened = await openObserved(isServer)
    const { store, user, groups, refusals } = opened
    await Promise.allSettled(
      Array.from({ length: QUEUE_MAX_WRITES + 2 }, (_, id) => store.createPlant(user, { id: BigInt(id), name: '' })),
    )

    expect(refusals).toEqual(['queue_full', 'queue_full'])
    expect(groups.reduce((sum, { writes }) => sum + writes, 0)).toBe(QUEUE_MAX_WRITES)
  })

  test('gets each write that was refused because another process kept the database locked', async () => {
    await using opened = await openObserved(isServer)
    const { store, user, groups, refusals, path } = opened
    using _lock = lock(path)
    const outcomes = await Promise.allSettled([1n, 2n].map((id) => store.createPlant(user, { id, name: 'Fern' })))

    expect(outcomes.map(({ status }) => status)).toEqual(['rejected', 'rejected'])
    expect({ groups, refusals }).toEqual({ groups: [], refusals: ['locked', 'locked'] })
  })
})

test('the sizes are those of the files', async () => {
  await using opened = await openObserved(true)

  expect(await opened.store.sizes()).toEqual({
    databaseBytes: statSync(opened.path).size,
    walBytes: statSync(opened.path + WAL).size,
  })
})

/** Holds the write lock as another program. */
function lock(path: string) {
  const db = new Database(path)
  db.run('begin immediate')
  return { [Symbol.dispose]: () => db.close(true) }
}
