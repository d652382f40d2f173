import { Database } from 'bun:sqlite'
import { describe, expect, test } from 'bun:test'
import { statfsSync, statSync } from 'node:fs'
import type { StoreObserver } from '../../../src/domain/store.ts'
import { engineOf } from '../../../src/store/open.ts'
import { openReader } from '../../../src/store/sqlite/driver.ts'
import { openWithUser, queryAll, WAL } from './files.ts'

const MIB = 1024 * 1024

async function openObserved() {
  const groups: { readonly writes: number; readonly syncMs: number }[] = []
  const refusals: string[] = []
  const observer: StoreObserver = {
    recordGroup: (writes, syncMs) => groups.push({ writes, syncMs }),
    recordRefusal: (reason) => refusals.push(reason),
  }
  const opened = await openWithUser({ isServer: true, observer })
  // Without the group that created the user.
  groups.length = 0
  return { ...opened, groups, refusals }
}

describe('the observer of the store of a server', () => {
  test('gets the number of writes, refused ones included, and the time of each group', async () => {
    await using opened = await openObserved()
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

  test('gets each write that was refused because another process kept the database locked', async () => {
    await using opened = await openObserved()
    const { store, user, groups, refusals, path } = opened
    using _lock = lock(path)
    const outcomes = await Promise.allSettled([1n, 2n].map((id) => store.createPlant(user, { id, name: 'Fern' })))

    expect(outcomes.map(({ status }) => status)).toEqual(['rejected', 'rejected'])
    expect({ groups, refusals }).toEqual({ groups: [], refusals: ['locked', 'locked'] })
  })
})

describe('the measurements of a store', () => {
  test('are those of its files, of its disk, and of its latest backup', async () => {
    const startMs = Date.now()
    await using opened = await openObserved()
    const tools = await engineOf(opened.path).fileTools()
    const measured = await opened.store.measure(startMs)
    await tools.recordBackup(5000, 77)
    await tools.recordBackup(6000, 88)
    const { lastBackupAtS, lastBackupBytes } = await opened.store.measure(startMs)

    expect(measured).toEqual({
      databaseBytes: statSync(opened.path).size,
      walBytes: expect.any(Number),
      diskBytes: expect.any(Number),
      diskFreeBytes: expect.any(Number),
      checkpointedAtS: expect.any(Number),
      lastBackupAtS: 0,
      lastBackupBytes: 0,
      expiringTokens: 0,
    })
    expect(measured.walBytes).toBeWithin(1, statSync(opened.path + WAL).size)
    const { blocks, bsize } = statfsSync(opened.path)
    expect(measured.diskBytes).toBe(blocks * bsize)
    expect(measured.diskFreeBytes).toBeWithin(0, blocks * bsize)
    expect(measured.checkpointedAtS).toBeWithin(startMs / 1000, Date.now() / 1000 + 0.001)
    expect({ lastBackupAtS, lastBackupBytes }).toEqual({ lastBackupAtS: 6, lastBackupBytes: 88 })
  })

  test('count tokens by an index, and read no plants', async () => {
    await using opened = await openObserved()
    const plan = queryAll(
      opened.path,
      `explain query plan select count(*) from (select 1 from tokens
         where revoked_at_ms is null and replaced_by is null and expires_at_ms > 1 and expires_at_ms <= 2 limit 1000)`,
    )

    expect(plan.flat().join(' ')).toContain('USING INDEX tokens_by_expiry')
  })

  test('show the latest checkpoint that brought the whole WAL into the database', async () => {
    await using opened = await openObserved()
    const { store, user, path } = opened
    const checkpointedAtS = async () => (await store.measure(0)).checkpointedAtS ?? 0
    const createMuch = async (id: number) => store.createPlant(user, { id: BigInt(id), name: 'x'.repeat(5 * MIB) })
    const opening = await checkpointedAtS()
    const reader = openReader(path)
    reader.run('begin')
    reader.prepare('select 1 from users').values()
    await createMuch(1)
    await createMuch(2)
    const held = await checkpointedAtS()
    reader.close(true)

    expect(held).toBe(opening)
    for (let id = 3; (await checkpointedAtS()) === opening; id++) await createMuch(id)
  })
})

/** Holds the write lock as another program. */
function lock(path: string) {
  const db = new Database(path)
  db.run('begin immediate')
  return { [Symbol.dispose]: () => db.close(true) }
}
