import { describe, expect, test } from 'bun:test'
import type { StoreUnderTest } from '../../support/stores.ts'
import { createUser } from '../fixtures.ts'

/** Tests what the comments of `StoreStatistics` say. */
export function statisticsContract({ open }: StoreUnderTest): void {
  describe('load', () => {
    test('is zero at rest, and counts the writes that wait until they are done', async () => {
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

    test('counts a longer wait while a write waits', async () => {
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

  describe('sizes', () => {
    test('grow with the plants', async () => {
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
