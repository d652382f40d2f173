import { describe, expect, test } from 'bun:test'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { MOUNTS, mountDisk } from '../../support/disk.ts'
import { lacks } from '../../support/requirement.ts'
import { createToken, newToken } from '../fixtures.ts'
import { openForTest } from './files.ts'

const DISK_BYTES = 4 * 1024 ** 2

// test/http/store-full.test.ts tests creates, deletes and lists.
describe.skipIf(lacks(MOUNTS))('on a full disk', () => {
  test('the store is not ready and refuses every kind of write', async () => {
    using disk = mountDisk(DISK_BYTES)
    await using opened = await openForTest(join(disk.path, 'plantstore.db'))
    const { store, failures } = opened
    const { token } = await createToken(store, 'me')
    const ballast = disk.fillUp()

    await untilRefused(() => store.checkReady())
    for (const write of [
      () => store.createTokens([newToken('you')]),
      () => store.touchTokens(new Map([[token.id, 1]]), 1),
      () => store.revokeTokens({ id: token.id }, 1),
      () => store.rotateToken(token.id, newToken('me'), 0),
      () => store.setUserBlock('me', 1),
      () => store.deleteUser('me'),
      () => store.checkReady(),
    ]) {
      await expect(write()).rejects.toMatchObject({ kind: 'store_full', outcomeIsUnknown: false })
    }
    expect(await store.listTokens()).toEqual([token])
    expect(failures).toEqual([])

    rmSync(ballast)
    await store.checkReady()
    expect(await store.deleteUser('me')).toEqual({ plants: 0, tokens: 1 })
  })
})

/** Writes until a write is refused because the disk is full. Any other end fails the test. */
async function untilRefused(write: () => Promise<unknown>): Promise<void> {
  for (let count = 0; count < DISK_BYTES / 4096; count++) {
    try {
      await write()
    } catch (error) {
      expect(error).toMatchObject({ kind: 'store_full', outcomeIsUnknown: false })
      return
    }
  }
  throw new Error('the disk was never full')
}
