import { describe, expect, test } from 'bun:test'
import type { StoreUnderTest } from '../../support/stores.ts'
import { CREATED_AT_MS, closeNow, createToken, findToken } from '../fixtures.ts'
import { rejectionOf } from '../rejection.ts'

const BLOCKED_AT_MS = CREATED_AT_MS + 5000

/** Tests what the comments of `Store` say about blocking users. */
export function blockContract({ open }: StoreUnderTest): void {
  describe('setUserBlock', () => {
    test('block all tokens of a user and none of another, also tokens that are created later', async () => {
      await using opened = await open()
      const { store } = opened
      const { hash, token } = await createToken(store, 'me')
      const { hash: yours, token: yourToken } = await createToken(store, 'you')

      expect(await store.setUserBlock('me', BLOCKED_AT_MS)).toBe(true)

      const { hash: later } = await createToken(store, 'me')
      expect(await findToken(store, hash)).toEqual({ ...token, userBlockedAtMs: BLOCKED_AT_MS })
      expect(await findToken(store, later)).toMatchObject({ userBlockedAtMs: BLOCKED_AT_MS })
      expect(await findToken(store, yours)).toEqual(yourToken)
      expect(await store.listUsers()).toMatchObject([
        { name: 'me', blockedAtMs: BLOCKED_AT_MS },
        { name: 'you', blockedAtMs: undefined },
      ])
    })

    test('keep the time of the first block, and say what changed', async () => {
      await using opened = await open()
      const { store } = opened
      const { hash, token } = await createToken(store, 'me')
      const blockedAtMs = async () => (await store.listUsers())[0]?.blockedAtMs

      expect(await store.setUserBlock('me', undefined)).toBe(false)
      expect(await store.setUserBlock('me', BLOCKED_AT_MS)).toBe(true)
      expect(await store.setUserBlock('me', BLOCKED_AT_MS + 1)).toBe(false)
      expect(await blockedAtMs()).toBe(BLOCKED_AT_MS)
      expect(await store.setUserBlock('me', undefined)).toBe(true)
      expect(await store.setUserBlock('me', undefined)).toBe(false)
      expect(await blockedAtMs()).toBeUndefined()
      expect(await findToken(store, hash)).toEqual(token)
    })

    test('show a block in another opening, and after all were closed', async () => {
      await using opened = await open()
      const other = await opened.reopen()
      const { hash } = await createToken(opened.store, 'me')

      await other.setUserBlock('me', BLOCKED_AT_MS)
      expect(await findToken(opened.store, hash)).toMatchObject({ userBlockedAtMs: BLOCKED_AT_MS })

      await closeNow(opened.store)
      await closeNow(other)
      expect(await findToken(await opened.reopen(), hash)).toMatchObject({ userBlockedAtMs: BLOCKED_AT_MS })
    })

    test('reject with user_not_found for a name that is unknown or was deleted, which a later user does not inherit', async () => {
      await using opened = await open()
      const { store } = opened
      await createToken(store, 'me')
      await store.setUserBlock('me', BLOCKED_AT_MS)
      await store.deleteUser('me')

      for (const blockedAtMs of [BLOCKED_AT_MS, undefined]) {
        for (const name of ['me', 'you', '']) {
          expect(await rejectionOf(store.setUserBlock(name, blockedAtMs))).toMatchObject({ kind: 'user_not_found' })
        }
      }
      const { token } = await createToken(store, 'me')
      expect(token.userBlockedAtMs).toBeUndefined()
    })
  })
}
