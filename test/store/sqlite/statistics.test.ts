import { Database } from 'bun:sqlite'
import { describe, expect, test } from 'bun:test'
import { statfsSync, statSync } from 'node:fs'
import type { EngineObserver } from '../../../src/engine/observer.ts'
import { databaseOf } from '../../../src/store/open.ts'
import { openWithUser, WAL } from './files.ts'

async function openObserved() {
  const groups: { readonly writes: number; readonly syncMs: number }[] = []
  const refusals: string[] = []
  const observer: EngineObserver = {
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
    using other = new Database(path)
    other.run('begin immediate')
    const outcomes = await Promise.allSettled([1n, 2n].map((id) => store.createPlant(user, { id, name: 'Fern' })))

    expect(outcomes.map(({ status }) => status)).toEqual(['rejected', 'rejected'])
    expect({ groups, refusals }).toEqual({ groups: [], refusals: ['locked', 'locked'] })
  })
})

describe('the measurements of a store', () => {
  test('are those of its files, of its disk, and of its latest backup', async () => {
    const startMs = Date.now()
    await using opened = await openObserved()
    const tools = await databaseOf(opened.path).fileTools()
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
})
