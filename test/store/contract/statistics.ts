import { describe, expect, test } from 'bun:test'
import type { StoreUnderTest } from '../../support/stores.ts'
import { createUser } from '../fixtures.ts'

/** Tests what the comments of `load` and `sizes` say. */
export function statisticsContract({ open }: StoreUnderTest): void {
  describe('load', () => {
    test('is zero at rest, counts the writes that wait until they are done, and for how long they wait', async () => {
      await using opened = await open()
      const { store } = opened
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
