import { describe, expect } from 'bun:test'
import { PAGE_TEXT_LENGTH, type PlantRange, type Store } from '../../../src/domain/store.ts'
import type { UserId } from '../../../src/domain/token.ts'
import { createUser } from '../fixtures.ts'
import type { TestedStore } from './test-store.ts'

/** Tests what the comments of `Store` say about long pages. test/http/socket/plants-model.test.ts tests order and limits. */
export function listContract({ test }: TestedStore): void {
  describe('listPlants', () => {
    test('ends a page before the limit only with the plant that fills it', async ({ store }) => {
      const user = await createUser(store, 'me')
      const half = { name: 'x'.repeat(PAGE_TEXT_LENGTH / 2 - 1), tag: 'y' }
      const almostHalf = { name: 'x'.repeat(PAGE_TEXT_LENGTH / 2 - 1) }
      for (const [id, plant] of [half, half, almostHalf, half, half, half].entries()) {
        await store.createPlant(user, { id: BigInt(id), ...plant })
      }
      const pageAfter = (after: bigint | undefined, limit: number) => readPage(store, user, { after, limit })

      for (const limit of [10, 100]) {
        expect(await pageAfter(undefined, limit)).toEqual({ ids: [0n, 1n], isLast: false })
        expect(await pageAfter(1n, limit)).toEqual({ ids: [2n, 3n, 4n], isLast: false })
        expect(await pageAfter(3n, limit)).toEqual({ ids: [4n, 5n], isLast: true })
        expect(await pageAfter(4n, limit)).toEqual({ ids: [5n], isLast: true })
      }
      expect(await pageAfter(1n, 2)).toEqual({ ids: [2n, 3n], isLast: false })
    })

    test('tells that a plant follows one that alone fills many pages', async ({ store }) => {
      const user = await createUser(store, 'me')
      for (const id of [1n, 2n, 3n]) {
        await store.createPlant(user, { id, name: '水'.repeat(4 * PAGE_TEXT_LENGTH) })
      }
      const pageAfter = (after: bigint | undefined) => readPage(store, user, { after, limit: 100 })

      expect(await pageAfter(undefined)).toEqual({ ids: [1n], isLast: false })
      expect(await pageAfter(1n)).toEqual({ ids: [2n], isLast: false })
      expect(await pageAfter(2n)).toEqual({ ids: [3n], isLast: true })
    })
  })
}

async function readPage(store: Store, user: UserId, range: PlantRange) {
  const { plants, isLast } = await store.listPlants(user, range)
  return { ids: plants.map(({ id }) => id), isLast }
}
