import { describe, expect, test } from 'bun:test'
import type { StoreUnderTest } from '../../support/stores.ts'
import { CREATED_AT_MS, createToken, findToken } from '../fixtures.ts'
import { rejectionOf } from '../rejection.ts'

const REVOKED_AT_MS = CREATED_AT_MS + 5000

/** Tests what the comments of `Store` say about revoking and touching tokens. */
export function revokeContract({ open }: StoreUnderTest): void {
  describe('revokeTokens', () => {
    test('revokes the token with that id, and no other', async () => {
      await using opened = await open()
      const [first, second] = await Promise.all([1, 2].map(() => createToken(opened.store, 'me')))
      if (!first || !second) throw new Error('unreachable')

      expect(await opened.store.revokeTokens({ id: first.token.id }, REVOKED_AT_MS)).toBe(1)

      expect((await findToken(opened.store, first.hash)).revokedAtMs).toBe(REVOKED_AT_MS)
      expect(await findToken(opened.store, second.hash)).toEqual(second.token)
    })

    test('revokes all of a user, and none of another', async () => {
      await using opened = await open()
      for (const name of ['me', 'you', 'me', 'me']) await createToken(opened.store, name)

      expect(await opened.store.revokeTokens({ userName: 'me' }, REVOKED_AT_MS)).toBe(3)

      const revokedAtMs = (await opened.store.listTokens()).map((token) => token.revokedAtMs)
      expect(revokedAtMs).toEqual([REVOKED_AT_MS, undefined, REVOKED_AT_MS, REVOKED_AT_MS])
    })

    test('counts the tokens that it revokes, and keeps the times of earlier revocations', async () => {
      await using opened = await open()
      const { token } = await createToken(opened.store, 'me')
      await createToken(opened.store, 'me', { expiresAtMs: CREATED_AT_MS })
      await opened.store.revokeTokens({ id: token.id }, REVOKED_AT_MS)

      expect(await opened.store.revokeTokens({ id: token.id }, REVOKED_AT_MS + 2)).toBe(0)
      expect(await opened.store.revokeTokens({ userName: 'me' }, REVOKED_AT_MS + 3)).toBe(1)
      expect(await opened.store.revokeTokens({ userName: 'me' }, REVOKED_AT_MS + 4)).toBe(0)

      const revokedAtMs = (await opened.store.listTokens()).map((each) => each.revokedAtMs)
      expect(revokedAtMs).toEqual([REVOKED_AT_MS, REVOKED_AT_MS + 3])
    })

    test('rejects a selection without a token', async () => {
      await using opened = await open()
      const { hash, token } = await createToken(opened.store, 'me')
      const revoke = (selection: Parameters<typeof opened.store.revokeTokens>[0]) =>
        opened.store.revokeTokens(selection, REVOKED_AT_MS)

      expect(await rejectionOf(revoke({ id: token.id + 1 }))).toMatchObject({ kind: 'token_not_found' })
      expect(await rejectionOf(revoke({ userName: 'you' }))).toMatchObject({ kind: 'user_not_found' })

      expect(await opened.store.findToken(hash)).toEqual(token)
    })
  })

  describe('touchTokens', () => {
    test('stores the last use of several tokens, and ignores one that does not exist', async () => {
      await using opened = await open()
      const { hash: goneHash, token: gone } = await createToken(opened.store, 'gone')
      const { token: first } = await createToken(opened.store, 'me')
      const { token: second } = await createToken(opened.store, 'me')
      const { token: third } = await createToken(opened.store, 'you')
      await opened.store.deleteUser('gone')

      await opened.store.touchTokens(new Map(), CREATED_AT_MS)
      await opened.store.touchTokens(
        new Map([
          [first.id, CREATED_AT_MS + 1],
          [gone.id, CREATED_AT_MS + 2],
          [third.id, CREATED_AT_MS + 3],
        ]),
        CREATED_AT_MS + 3,
      )

      expect(await opened.store.findToken(goneHash)).toBeUndefined()
      expect(await opened.store.listTokens()).toEqual([
        { ...first, lastUsedAtMs: CREATED_AT_MS + 1 },
        second,
        { ...third, lastUsedAtMs: CREATED_AT_MS + 3 },
      ])
    })

    test('keeps a later use until now, and replaces one in the future', async () => {
      await using opened = await open()
      const { store } = opened
      const { hash, token } = await createToken(store, 'me')
      const touch = async (atMs: number, nowMs: number) => {
        await store.touchTokens(new Map([[token.id, CREATED_AT_MS + atMs]]), CREATED_AT_MS + nowMs)
        return ((await findToken(store, hash)).lastUsedAtMs ?? 0) - CREATED_AT_MS
      }

      expect(await touch(5, 5)).toBe(5)
      expect(await touch(4, 5)).toBe(5)
      expect(await touch(6, 8)).toBe(6)
      expect(await touch(3, 5)).toBe(3)
    })
  })
}
