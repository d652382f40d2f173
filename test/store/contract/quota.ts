import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import type { Store } from '../../../src/domain/store.ts'
import { GROUP_MAX_WRITES } from '../../../src/store/group-queue.ts'
import { expectProperty, PROPERTY_TIMEOUT_MS } from '../../support/properties.ts'
import type { StoreUnderTest } from '../../support/stores.ts'
import { createUser, listIds, outcomesOf } from '../fixtures.ts'

const fern = (id: number) => ({ id: BigInt(id), name: 'Fern' })

/** So many ids from 1 on. */
const idsUpTo = (count: number) => Array.from({ length: count }, (_, index) => index + 1)

/** Tests what the comments of `Store` say about the quota of plants. */
export function quotaContract({ open }: StoreUnderTest): void {
  describe('the quota of plants', () => {
    test('of 0 leaves the store ready, refuses every create, and rejects with plant_exists for a plant that exists', async () => {
      await using opened = await open()
      const user = await createUser(opened.store, 'me')
      await opened.store.createPlant(user, fern(1))
      const limited = await opened.reopen({ quotaPlants: 0 })

      await limited.checkReady()
      const outcomes = await outcomesOf([1, 2].map((id) => limited.createPlant(user, fern(id))))

      expect(outcomes).toEqual(['plant_exists', 'quota_exceeded'])
      expect(await listIds(opened.store, user)).toEqual([1n])
    })

    test('is checked after the id: a plant that exists is plant_exists for a user with as many plants as it allows', async () => {
      await using opened = await open({ quotaPlants: 2 })
      const { store } = opened
      const user = await createUser(store, 'me')

      const outcomes = await outcomesOf([1, 1, 2, 3, 3, 2, 1].map((id) => store.createPlant(user, fern(id))))

      const exists = 'plant_exists'
      expect(outcomes).toEqual(['done', exists, 'done', 'quota_exceeded', 'quota_exceeded', exists, exists])
    })

    test('holds for plants that another store without a quota creates, and for a user with more plants than it allows', async () => {
      await using opened = await open({ quotaPlants: 3 })
      const { store } = opened
      const unlimited = await opened.reopen({ quotaPlants: undefined })
      const user = await createUser(store, 'me')
      await store.createPlant(user, fern(1))
      for (const id of [2, 3, 4, 5]) await unlimited.createPlant(user, fern(id))

      const outcomes: string[] = []
      for (const id of [1, 2, 3]) {
        outcomes.push(...(await outcomesOf([store.createPlant(user, fern(6))])))
        await store.deletePlant(user, BigInt(id))
      }
      outcomes.push(...(await outcomesOf([6, 7].map((id) => store.createPlant(user, fern(id))))))

      expect(outcomes).toEqual(['quota_exceeded', 'quota_exceeded', 'quota_exceeded', 'done', 'quota_exceeded'])
      expect(await listIds(store, user)).toEqual([4n, 5n, 6n])
    })

    test('stores exactly as many of many creates at once as it allows', async () => {
      await using opened = await open({ quotaPlants: 700 })
      const user = await createUser(opened.store, 'me')

      const outcomes = await outcomesOf(
        idsUpTo(2 * GROUP_MAX_WRITES).map((id) => opened.store.createPlant(user, fern(id))),
      )

      expect(outcomes).toEqual(idsUpTo(2 * GROUP_MAX_WRITES).map((id) => (id <= 700 ? 'done' : 'quota_exceeded')))
      expect(await listIds(opened.store, user)).toHaveLength(700)
    })

    test(
      'is kept by any creates and deletes of three stores at once, and no create is refused that has room',
      async () => {
        await using opened = await open({ quotaPlants: 5 })
        const stores = [opened.store, await opened.reopen({ quotaPlants: 5 }), await opened.reopen({ quotaPlants: 5 })]
        const anyWrite = fc.record({ side: fc.nat(2), isDelete: fc.boolean(), id: fc.nat(12), waits: fc.boolean() })
        let run = 0

        await expectProperty('the quota of three stores', fc.array(anyWrite, { maxLength: 40 }), async (writes) => {
          const user = await createUser(opened.store, `user ${run++}`)
          let atOnce: Promise<unknown>[] = []
          for (const { side, isDelete, id, waits } of writes) {
            const store = stores[side] ?? opened.store
            const write = isDelete ? store.deletePlant(user, BigInt(id)) : store.createPlant(user, fern(id))
            atOnce.push(write)
            if (!waits) continue
            await Promise.allSettled(atOnce)
            atOnce = []
            await expectQuota([store])
          }
          await Promise.allSettled(atOnce)
          await expectQuota(stores)

          /** One after the other, the quota is exact on every side. */
          async function expectQuota(sides: readonly Store[]) {
            const ids = await listIds(opened.store, user)
            expect(ids.length).toBeLessThanOrEqual(5)
            for (const side of sides) {
              const free = BigInt(100 + run)
              const [created] = await outcomesOf([side.createPlant(user, { id: free, name: 'Ivy' })])
              expect(created).toBe(ids.length < 5 ? 'done' : 'quota_exceeded')
              if (created === 'done') await side.deletePlant(user, free)
            }
          }
        })
      },
      PROPERTY_TIMEOUT_MS,
    )
  })
}
