import { describe, expect, test } from 'bun:test'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { EXT4_DISKS, mountFragileDisk } from '../../support/disk.ts'
import { lacks } from '../../support/requirement.ts'
import { createUser, listIds } from '../fixtures.ts'
import { openForTest } from './files.ts'

describe.skipIf(lacks(EXT4_DISKS))('on a file system that turns read-only', () => {
  test('writes are refused as on a full disk, reads go on, and close rejects because it cannot sync', async () => {
    using disk = mountFragileDisk()
    const opened = await openForTest(join(disk.path, 'plantstore.db'))
    const user = await createUser(opened.store, 'me')
    await opened.store.createPlant(user, { id: 1n, name: 'Fern' })
    const files = readdirSync(disk.path)

    disk.turnReadOnly()

    const refused = { kind: 'store_full', outcomeIsUnknown: false }
    for (const write of [
      () => opened.store.createPlant(user, { id: 2n, name: 'Ivy' }),
      () => opened.store.deletePlant(user, 1n),
      () => opened.store.checkReady(),
    ]) {
      await expect(write()).rejects.toMatchObject(refused)
    }
    expect(await listIds(opened.store, user)).toEqual([1n])
    expect(opened.failures).toEqual([])
    expect(readdirSync(disk.path)).toEqual(files)
    // What was acknowledged was synced before; that nothing more can be is told.
    await expect(opened.close()).rejects.toMatchObject({ kind: 'store_failed' })
  })
})
