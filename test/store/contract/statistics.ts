import { describe, expect, test } from 'bun:test'
import { INT64_MAX, INT64_MIN } from '../../../src/domain/int64.ts'
import type { StoreUnderTest } from '../../support/stores.ts'
import { closeNow, createToken, createUser } from '../fixtures.ts'

/** What the comments of `StoreStatistics` say. */
export function figuresContract({ open }: StoreUnderTest): void {
  describe('load', () => {
    test('is nothing in a store at rest, and the writes that wait, until they are done', async () => {
      await using opened = await open()
      const { store } = opened
      const user = await createUser(store, 'me')
      const atRest = store.load()
      const writes = [1n, 2n, 3n].map((id) => store.createPlant(user, { id, name: 'Fern' }))
      const begunMs = performance.now()
      const during = store.load()
      await Promise.all(writes)
      const tookMs = performance.now() - begunMs

      expect(atRest).toEqual({ waitingWrites: 0, longestWaitMs: 0 })
      expect(during.waitingWrites).toBe(3)
      expect(during.longestWaitMs).toBeWithin(0, tookMs + 1000)
      expect(store.load()).toEqual({ waitingWrites: 0, longestWaitMs: 0 })
    })

    test('grows older while a write waits', async () => {
      await using opened = await open()
      const user = await createUser(opened.store, 'me')
      const write = opened.store.createPlant(user, { id: 1n, name: 'Fern' })
      const first = opened.store.load().longestWaitMs
      const startMs = performance.now()
      while (performance.now() - startMs < 5);

      expect(opened.store.load().longestWaitMs - first).toBeGreaterThanOrEqual(5)
      await write
    })
  })

  describe('count', () => {
    test('counts the plants of all users and all tokens, revoked and expired ones included', async () => {
      await using opened = await open()
      const { store } = opened
      const me = await createUser(store, 'me')
      const { token } = await createToken(store, 'you', { expiresAtMs: 1 })
      await store.revokeTokens({ userName: 'me' }, 1)
      for (const id of [INT64_MIN, -1n, 0n, 1n, INT64_MAX]) await store.createPlant(me, { id, name: 'Fern' })
      for (const id of [INT64_MIN, INT64_MAX]) await store.createPlant(token.userId, { id, name: 'Ivy' })

      expect(await store.count()).toEqual({ plants: 7, tokens: 2 })
    })

    test('counts nothing in an empty store', async () => {
      await using opened = await open()

      expect(await opened.store.count()).toEqual({ plants: 0, tokens: 0 })
    })

    test('returns what it returned before while nothing changes, and counts anew after any change', async () => {
      await using opened = await open()
      const { store } = opened
      const user = await createUser(store, 'me')
      const first = await store.count()
      const again = await store.count(first)
      await store.createPlant(user, { id: 1n, name: 'Fern' })
      const afterOwn = await store.count(again)
      const afterOwnAgain = await store.count(afterOwn)
      const other = await opened.reopen()
      await other.deletePlant(user, 1n)
      await createUser(other, 'you')

      expect([again === first, afterOwn === first, afterOwnAgain === afterOwn]).toEqual([true, false, true])
      expect(afterOwn).toEqual({ plants: 1, tokens: 1 })
      expect(await store.count(afterOwn)).toEqual({ plants: 0, tokens: 2 })
    })

    test('is refused once the store is closed', async () => {
      await using opened = await open()
      await closeNow(opened.store)

      await expect(opened.store.count()).rejects.toMatchObject({ kind: 'store_busy' })
    })
  })

  describe('sizes', () => {
    test('grow with what is stored', async () => {
      await using opened = await open()
      const { store } = opened
      const user = await createUser(store, 'me')
      // Nothing that a database makes smaller.
      const random = Buffer.from(crypto.getRandomValues(new Uint8Array(65_536)))
        .toString('hex')
        .repeat(16)
      const before = await store.sizes()
      await store.createPlant(user, { id: 1n, name: random })
      const after = await store.sizes()

      expect(before.databaseBytes).toBeGreaterThan(0)
      expect(after.databaseBytes + after.walBytes - before.databaseBytes - before.walBytes).toBeGreaterThan(1_000_000)
    })
  })
}
