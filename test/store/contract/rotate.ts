import { describe, expect, test } from 'bun:test'
import { tokenState } from '../../../src/domain/token.ts'
import type { StoreUnderTest } from '../../support/stores.ts'
import { CREATED_AT_MS, createToken, findToken, newToken, outcomesOf } from '../fixtures.ts'
import { rejectionOf } from '../rejection.ts'

const HOUR_MS = 3_600_000
const ROTATED_AT_MS = CREATED_AT_MS + 5000
/** How many rotations of one token are asked for at once. */
const AT_ONCE = 8

/** A token that replaces another one. */
const successor = (expiresAtMs?: number, createdAtMs = ROTATED_AT_MS) =>
  newToken('me', { scope: 'read', label: 'laptop', createdAtMs, expiresAtMs })

/** Tests what the comments of `Store` say about rotating tokens. */
export function rotateContract({ open }: StoreUnderTest): void {
  describe('rotateToken', () => {
    test('stores the new token, and lets the old one expire after the overlap', async () => {
      await using opened = await open()
      const { hash, token } = await createToken(opened.store, 'me', { scope: 'read', label: 'laptop' })
      const { hash: otherHash, token: other } = await createToken(opened.store, 'me')
      const next = successor(ROTATED_AT_MS + 90 * HOUR_MS)

      const rotated = await opened.store.rotateToken(token.id, next, HOUR_MS)

      expect(rotated).toEqual({ id: expect.any(Number), oldEndsAtMs: ROTATED_AT_MS + HOUR_MS })
      const old = { ...token, expiresAtMs: ROTATED_AT_MS + HOUR_MS, replacedBy: rotated.id }
      expect(await findToken(opened.store, hash)).toEqual(old)
      const times = { createdAtMs: ROTATED_AT_MS, expiresAtMs: ROTATED_AT_MS + 90 * HOUR_MS }
      expect(await findToken(opened.store, next.hash)).toEqual({ ...token, id: rotated.id, ...times })
      expect(await findToken(opened.store, otherHash)).toEqual(other)
      const states = [0, HOUR_MS - 1, HOUR_MS, -HOUR_MS].map((ms) => tokenState(old, ROTATED_AT_MS + ms))
      expect(states).toEqual(['active', 'active', 'expired', 'active'])
    })

    test('leaves an earlier expiry of the old token as it is', async () => {
      await using opened = await open()
      const { hash, token } = await createToken(opened.store, 'me', { expiresAtMs: ROTATED_AT_MS + 1 })

      const { oldEndsAtMs } = await opened.store.rotateToken(token.id, successor(), HOUR_MS)

      expect(oldEndsAtMs).toBe(ROTATED_AT_MS + 1)
      expect(await findToken(opened.store, hash)).toMatchObject({ expiresAtMs: ROTATED_AT_MS + 1 })
    })

    test('without an overlap revokes the old token, also for a clock that is set back', async () => {
      await using opened = await open()
      const { hash, token } = await createToken(opened.store, 'me', { expiresAtMs: ROTATED_AT_MS + HOUR_MS })

      const { id, oldEndsAtMs } = await opened.store.rotateToken(token.id, successor(), 0)

      expect(oldEndsAtMs).toBe(ROTATED_AT_MS)
      const old = await findToken(opened.store, hash)
      expect(old).toEqual({ ...token, revokedAtMs: ROTATED_AT_MS, replacedBy: id })
      expect(tokenState(old, ROTATED_AT_MS - HOUR_MS)).toBe('revoked')
    })

    test('refuses a token that is unknown, revoked, expired or replaced, and stores nothing', async () => {
      await using opened = await open()
      const { store } = opened
      const { token: revoked } = await createToken(store, 'me')
      const { token: expired } = await createToken(store, 'me', { expiresAtMs: ROTATED_AT_MS })
      const { token: replaced } = await createToken(store, 'me')
      const { token: ended } = await createToken(store, 'me')
      await store.revokeTokens({ id: revoked.id }, CREATED_AT_MS)
      const { id } = await store.rotateToken(replaced.id, successor(), HOUR_MS)
      const { id: endedBy } = await store.rotateToken(ended.id, successor(), 0)
      const before = await store.listTokens()

      const refusals = [
        [revoked.id, `Token ${revoked.id} is revoked: create a new one.`],
        [expired.id, `Token ${expired.id} is expired: create a new one.`],
        [
          replaced.id,
          `Token ${id} replaces token ${replaced.id} already: run plantstore token revoke ${replaced.id} to end token ${replaced.id} at once, or rotate token ${id}.`,
        ],
        [ended.id, `Token ${endedBy} replaces token ${ended.id} already: rotate token ${endedBy}.`],
      ] as const
      for (const [token, message] of refusals) {
        const rotating = store.rotateToken(token, successor(), HOUR_MS)
        expect(await rejectionOf(rotating)).toMatchObject({ kind: 'rotation_refused', message })
      }
      const unknown = store.rotateToken(endedBy + 1, successor(), HOUR_MS)
      expect(await rejectionOf(unknown)).toMatchObject({ kind: 'token_not_found' })
      expect(await store.listTokens()).toEqual(before)
    })

    test('of one token from two openings at once replaces it once', async () => {
      await using opened = await open()
      const stores = [opened.store, await opened.reopen()]
      const { token } = await createToken(opened.store, 'me')

      const outcomes = await outcomesOf(
        Array.from({ length: AT_ONCE }, (_, index) =>
          (stores[index % 2] ?? opened.store).rotateToken(token.id, successor(), HOUR_MS),
        ),
      )

      expect(outcomes.sort()).toEqual(['done', ...Array(AT_ONCE - 1).fill('rotation_refused')])
      const [old, next, ...more] = await opened.store.listTokens()
      expect(more).toEqual([])
      expect(old?.replacedBy).toBe(next?.id)
    })

    test('of a token that is being revoked keeps the revocation', async () => {
      await using opened = await open()
      const { hash, token } = await createToken(opened.store, 'me')
      await opened.store.rotateToken(token.id, successor(), HOUR_MS)

      expect(await opened.store.revokeTokens({ id: token.id }, ROTATED_AT_MS + 1)).toBe(1)

      expect(await findToken(opened.store, hash)).toMatchObject({ revokedAtMs: ROTATED_AT_MS + 1 })
    })

    test('of a token of a blocked user works, and both tokens stay blocked', async () => {
      await using opened = await open()
      const { hash, token } = await createToken(opened.store, 'me')
      await opened.store.setUserBlock('me', CREATED_AT_MS)
      const next = successor()

      await opened.store.rotateToken(token.id, next, HOUR_MS)

      const states = await Promise.all(
        [hash, next.hash].map(async (each) => tokenState(await findToken(opened.store, each), ROTATED_AT_MS)),
      )
      expect(states).toEqual(['blocked', 'blocked'])
    })

    test('makes a chain, also by a clock that was set back during an overlap', async () => {
      await using opened = await open()
      const { store } = opened
      const { token: first } = await createToken(store, 'me')
      const { id: second } = await store.rotateToken(first.id, successor(), HOUR_MS)
      const earlierMs = CREATED_AT_MS - 100 * HOUR_MS
      const again = await rejectionOf(store.rotateToken(first.id, successor(undefined, earlierMs), HOUR_MS))

      const { id: third } = await store.rotateToken(second, successor(undefined, earlierMs), HOUR_MS)

      expect(again).toMatchObject({ kind: 'rotation_refused' })
      const tokens = await store.listTokens()
      expect(tokens.map(({ id, replacedBy, expiresAtMs }) => [id, replacedBy, expiresAtMs])).toEqual([
        [first.id, second, ROTATED_AT_MS + HOUR_MS],
        [second, third, earlierMs + HOUR_MS],
        [third, undefined, undefined],
      ])
      const statesAt = (nowMs: number) => tokens.map((token) => tokenState(token, nowMs))
      expect(statesAt(earlierMs)).toEqual(['active', 'active', 'active'])
      expect(statesAt(ROTATED_AT_MS)).toEqual(['active', 'expired', 'active'])
      expect(statesAt(ROTATED_AT_MS + HOUR_MS)).toEqual(['expired', 'expired', 'active'])
    })
  })
}
