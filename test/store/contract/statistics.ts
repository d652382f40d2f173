import { describe, expect } from 'bun:test'
import { EXPIRES_SOON_MS, EXPIRING_TOKENS_MAX } from '../../../src/domain/store.ts'
import { CREATED_AT_MS, createToken, createUser, newToken } from '../fixtures.ts'
import type { TestedStore } from './test-store.ts'

const DAY_MS = 24 * 3_600_000

/** Tests what the comments of `load` and `measure` say. */
export function statisticsContract({ test }: TestedStore): void {
  describe('load', () => {
    test('is zero at rest, counts the writes that wait, and tells for how long they wait', async ({ store }) => {
      const user = await createUser(store, 'me')
      const atRest = store.load()
      const startMs = performance.now()
      const writes = [1n, 2n, 3n].map((id) => store.createPlant(user, { id, name: 'Fern' }))
      const first = store.load()
      while (performance.now() - startMs < 5);
      const second = store.load()
      const tookMs = performance.now() - startMs
      await Promise.all(writes)

      expect([atRest, store.load()]).toEqual(Array(2).fill({ waitingWrites: 0, longestWaitMs: 0 }))
      expect([first.waitingWrites, second.waitingWrites]).toEqual([3, 3])
      expect(first.longestWaitMs).toBeGreaterThanOrEqual(0)
      expect(second.longestWaitMs).toBeGreaterThan(first.longestWaitMs)
      expect(second.longestWaitMs).toBeLessThanOrEqual(tookMs)
    })
  })

  describe('measure', () => {
    test('shows that the database grows with the plants', async ({ store }) => {
      const user = await createUser(store, 'me')
      // Nothing that a database makes smaller.
      const random = Buffer.from(crypto.getRandomValues(new Uint8Array(65_536)))
        .toString('hex')
        .repeat(16)
      const measureBytes = async () => {
        const { databaseBytes = 0, walBytes } = await store.measure(CREATED_AT_MS)
        return { databaseBytes, sum: databaseBytes + walBytes }
      }
      const before = await measureBytes()
      await store.createPlant(user, { id: 1n, name: random })
      const after = await measureBytes()

      expect(before.databaseBytes).toBeGreaterThan(0)
      expect(after.sum - before.sum).toBeGreaterThan(1_000_000)
    })

    test('counts the active tokens that expire within seven days', async ({ store }) => {
      for (const afterMs of [0, 1, DAY_MS, EXPIRES_SOON_MS, EXPIRES_SOON_MS + 1]) {
        await createToken(store, 'me', { expiresAtMs: CREATED_AT_MS + afterMs })
      }
      await createToken(store, 'me')
      const { token } = await createToken(store, 'me', { expiresAtMs: CREATED_AT_MS + DAY_MS })
      const { expiringTokens } = await store.measure(CREATED_AT_MS)
      await store.revokeTokens({ id: token.id }, CREATED_AT_MS)

      // Those after 1 ms, after a day, and after seven days.
      expect(expiringTokens).toBe(4)
      expect(await store.measure(CREATED_AT_MS)).toMatchObject({ expiringTokens: 3 })
      // A token that another one replaces does not count.
      await store.rotateToken(3, newToken('me', { expiresAtMs: CREATED_AT_MS + DAY_MS }), DAY_MS)
      expect(await store.measure(CREATED_AT_MS)).toMatchObject({ expiringTokens: 3 })
      expect(await store.measure(CREATED_AT_MS + 1)).toMatchObject({ expiringTokens: 3 })
      expect(await store.measure(CREATED_AT_MS + 2 * EXPIRES_SOON_MS)).toMatchObject({ expiringTokens: 0 })
    })

    test('counts no more tokens than its limit', async ({ store }) => {
      const create = (count: number) =>
        store.createTokens(Array.from({ length: count }, () => newToken('me', { expiresAtMs: CREATED_AT_MS + 1 })))
      await create(EXPIRING_TOKENS_MAX)
      const atLimit = await store.measure(CREATED_AT_MS)
      await create(1)
      const beyond = await store.measure(CREATED_AT_MS)

      expect([atLimit.expiringTokens, beyond.expiringTokens]).toEqual([EXPIRING_TOKENS_MAX, EXPIRING_TOKENS_MAX])
    })
  })
}
