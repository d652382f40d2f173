import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import type { PlantCondition, Store } from '../../../src/domain/store.ts'
import { GROUP_MAX_WRITES } from '../../../src/engine/group-queue.ts'
import { expectProperty } from '../../support/properties.ts'
import type { StoreUnderTest } from '../../support/stores.ts'
import { createUser, listIds, outcomesOf } from '../fixtures.ts'

const fern = (id: number) => ({ id: BigInt(id), name: 'Fern' })

/** So many ids from 1 on. */
const idsUpTo = (count: number) => Array.from({ length: count }, (_, index) => index + 1)

/** Tests what the comments of `Store` say about the quota of plants. */
export function quotaContract({ open }: StoreUnderTest): void {
  describe('the quota of plants', () => {
    test('stores exactly as many of many creates at once as it allows', async () => {
      await using opened = await open({ quotaPlants: 700 })
      const user = await createUser(opened.store, 'me')

      const outcomes = await outcomesOf(
        idsUpTo(2 * GROUP_MAX_WRITES).map((id) => opened.store.createPlant(user, fern(id))),
      )

      expect(outcomes).toEqual(idsUpTo(2 * GROUP_MAX_WRITES).map((id) => (id <= 700 ? 'done' : 'quota_exceeded')))
      expect(await listIds(opened.store, user)).toHaveLength(700)
    })

    test('lets a put replace, and refuses one that would make a plant, if its condition holds', async () => {
      await using opened = await open({ quotaPlants: 2 })
      const { store } = opened
      const user = await createUser(store, 'me')
      const put = (id: number, condition?: PlantCondition) => store.putPlant(user, fern(id), condition)

      const outcomes = await outcomesOf([
        put(1),
        put(2),
        put(3),
        put(1),
        put(3, 'none'),
        put(1, 'none'),
        put(3, 'some'),
      ])
      const tagged = await outcomesOf([put(3, () => true), put(3, () => false), put(2, () => true)])
      await store.deletePlant(user, 1n)
      const room = await outcomesOf([put(3), put(2), put(1), put(3)])

      const done = ['done', 'done', 'quota_exceeded', 'done']
      expect(outcomes).toEqual([...done, 'quota_exceeded', 'precondition_failed', 'precondition_failed'])
      expect(tagged).toEqual(['quota_exceeded', 'precondition_failed', 'done'])
      expect(room).toEqual(done)
      expect(await listIds(store, user)).toEqual([2n, 3n])
    })

    test('refuses every create while the user has as many plants as a lowered quota, or more', async () => {
      await using opened = await open()
      const user = await createUser(opened.store, 'me')
      for (const id of idsUpTo(5)) await opened.store.createPlant(user, fern(id))
      const store = await opened.reopen({ quotaPlants: 2 })
      const outcomes = await outcomesOf([store.createPlant(user, fern(6))])

      for (const id of idsUpTo(4)) {
        await store.deletePlant(user, BigInt(id))
        outcomes.push(...(await outcomesOf([store.createPlant(user, fern(6))])))
      }

      expect(outcomes).toEqual([...Array(4).fill('quota_exceeded'), 'done'])
    })
  })
}

/** Tests the quota with any writes. Each database needs that once, because its stores count with the same code. */
export function quotaProperty(stores: readonly StoreUnderTest[]): void {
  describe.each(stores)('the quota of plants, $name', ({ open }) => {
    test('is kept by any creates, puts and deletes of three stores at once, and no create is refused that has room', async () => {
      await using opened = await open({ quotaPlants: 5 })
      const stores = [opened.store, await opened.reopen({ quotaPlants: 5 }), await opened.reopen({ quotaPlants: 5 })]
      const kinds = ['create', 'delete', 'put', 'put if none'] as const
      const anyKind = fc.constantFrom(...kinds)
      const anyWrite = fc.record({ side: fc.nat(2), kind: anyKind, id: fc.nat(12), waits: fc.boolean() })
      let run = 0

      await expectProperty('the quota of three stores', fc.array(anyWrite, { maxLength: 40 }), async (writes) => {
        const user = await createUser(opened.store, `user ${run++}`)
        let atOnce: Promise<unknown>[] = []
        for (const { side, kind, id, waits } of writes) {
          const store = stores[side] ?? opened.store
          if (kind === 'create') atOnce.push(store.createPlant(user, fern(id)))
          else if (kind === 'delete') atOnce.push(store.deletePlant(user, BigInt(id)))
          else atOnce.push(store.putPlant(user, fern(id), kind === 'put' ? undefined : 'none'))
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
    })
  })
}
