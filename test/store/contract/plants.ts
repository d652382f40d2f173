import { describe, expect } from 'bun:test'
import type { Plant } from '../../../src/domain/plant.ts'
import { createUser, listAll, outcomesOf } from '../fixtures.ts'
import { rejectionOf } from '../rejection.ts'
import type { TestedStore } from './test-store.ts'

/** Tests what the comments of `Store` say about deletes with a condition while others replace the plant. */
export function plantsContract({ test }: TestedStore): void {
  describe('deletePlant with a condition', () => {
    const isFern = ({ name }: Plant) => name === 'Fern'

    test('keeps a plant that replaces the expected one in the same group', async ({ store }) => {
      const user = await createUser(store, 'me')
      await store.createPlant(user, { id: 1n, name: 'Fern' })
      let replaced: Promise<unknown> | undefined

      const deletion = store.deletePlant(user, 1n, (plant) => {
        replaced ??= Promise.all([store.deletePlant(user, 1n), store.createPlant(user, { id: 1n, name: 'Ivy' })])
        return isFern(plant)
      })

      expect(await rejectionOf(deletion)).toMatchObject({ kind: 'precondition_failed' })
      await replaced
      expect(await listAll(store, user)).toEqual([{ id: 1n, name: 'Ivy' }])
    })

    test('keeps a plant by which another opening replaces the expected one', async ({ store, reopen }) => {
      const other = await reopen()
      const user = await createUser(store, 'me')
      for (let round = 0; round < 20; round++) {
        const id = BigInt(round)
        await store.createPlant(user, { id, name: 'Fern' })

        const deletion = outcomesOf([store.deletePlant(user, id, isFern)])
        const [replaced] = await outcomesOf([other.deletePlant(user, id)])
        await other.createPlant(user, { id, name: 'Ivy' })

        const [deleted] = await deletion
        expect([deleted, replaced].filter((outcome) => outcome === 'done')).toEqual(['done'])
      }
      expect(new Set((await listAll(store, user)).map(({ name }) => name))).toEqual(new Set(['Ivy']))
    })

    test('deletes without it what has changed, although an equal delete with it is refused', async ({ store }) => {
      const user = await createUser(store, 'me')
      await store.createPlant(user, { id: 1n, name: 'Fern' })

      const replaced = [store.deletePlant(user, 1n), store.createPlant(user, { id: 1n, name: 'Ivy' })]
      const deletions = [store.deletePlant(user, 1n, isFern), store.deletePlant(user, 1n)]

      expect(await outcomesOf(replaced)).toEqual(['done', 'done'])
      const [conditional, unconditional] = await outcomesOf(deletions)
      expect(['precondition_failed', 'plant_not_found']).toContain(String(conditional))
      expect(unconditional).toBe('done')
    })
  })
}
