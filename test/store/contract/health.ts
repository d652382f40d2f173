import { describe, expect, test } from 'bun:test'
import type { StoreUnderTest } from '../../support/stores.ts'
import { createToken, createUser, listAll } from '../fixtures.ts'

/** Tests what the comments of `Store` say about its health. */
export function healthContract({ open }: StoreUnderTest): void {
  describe('checkReady', () => {
    test('resolves again and again while the store can be read and written, and changes nothing', async () => {
      await using opened = await open()
      const { store } = opened
      await store.checkReady()
      const { hash, token } = await createToken(store, 'me')
      await store.createPlant(token.userId, { id: 1n, name: 'Fern' })

      for (let count = 0; count < 3; count++) await store.checkReady()
      await (await opened.reopen()).checkReady()

      expect(await store.findToken(hash)).toEqual(token)
      expect(await listAll(store, token.userId)).toEqual([{ id: 1n, name: 'Fern' }])
    })
  })

  describe('checkIntegrity', () => {
    test('finds no problems in an empty store and in one in use, in each opening', async () => {
      await using opened = await open()
      expect(await opened.store.checkIntegrity()).toEqual([])
      const user = await createUser(opened.store, 'me')
      for (let id = 0n; id < 100n; id++) await opened.store.createPlant(user, { id, name: '🌱'.repeat(500) })
      await createUser(opened.store, 'you')
      await opened.store.deleteUser('you')

      expect(await opened.store.checkIntegrity()).toEqual([])
      expect(await (await opened.reopen()).checkIntegrity()).toEqual([])
    })
  })
}
