import { describe, expect, test } from 'bun:test'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import type { Store } from '../../../src/domain/store.ts'
import { MOUNTS, mountDisk } from '../../support/disk.ts'
import { lacks } from '../../support/requirement.ts'
import { createToken, findToken, listIds, newToken } from '../fixtures.ts'
import { openForTest } from './files.ts'

const DISK_BYTES = 4 * 1024 ** 2
const BALLAST_BYTES = 2 * 1024 ** 2

describe.skipIf(lacks(MOUNTS))('on a full disk', () => {
  test('writes are refused and reads go on, and writes succeed once there is room', async () => {
    using disk = mountDisk(DISK_BYTES)
    const path = join(disk.path, 'plantstore.db')
    await using opened = await openForTest(path)
    const { store, failures } = opened
    const { hash, token } = await createToken(store, 'me')
    const ballast = disk.fill(BALLAST_BYTES)

    const acknowledged = await createUntilRefused(store, token.userId)
    const refused = BigInt(acknowledged.length)
    for (let count = 0; count < 3; count++) {
      const again = store.createPlant(token.userId, { id: refused, name: LARGE })
      await expect(again).rejects.toMatchObject({ kind: 'store_full', outcomeIsUnknown: false })
    }

    expect(acknowledged.length).toBeGreaterThan(10)
    expect(await listIds(store, token.userId)).toEqual(acknowledged)
    expect(await findToken(store, hash)).toEqual(token)

    rmSync(ballast)
    await store.createPlant(token.userId, { id: refused, name: LARGE })
    await store.deletePlant(token.userId, 0n)
    await store.checkReady()
    expect(await listIds(store, token.userId)).toEqual([...acknowledged, refused].slice(1))
    expect(failures).toEqual([])
    expect(await store.checkIntegrity()).toEqual([])
  })

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

const LARGE = 'Fern '.repeat(2000)

/** Creates plants with ids from 0 until one is refused because the disk is full. Resolves to the stored ids. */
async function createUntilRefused(store: Store, user: number): Promise<bigint[]> {
  const acknowledged: bigint[] = []
  await untilRefused(async () => {
    const id = BigInt(acknowledged.length)
    await store.createPlant(user, { id, name: LARGE })
    acknowledged.push(id)
  })
  return acknowledged
}

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
