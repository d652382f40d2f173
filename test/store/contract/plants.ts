import { describe, expect, test } from 'bun:test'
import type { Plant } from '../../../src/domain/plant.ts'
import type { StoreUnderTest } from '../../support/stores.ts'
import { createUser, listAll, outcomesOf } from '../fixtures.ts'
import { rejectionOf } from '../rejection.ts'

const TEXTS = [
  '',
  ' ',
  'Fern',
  '\u0001\u001f',
  'two\r\nlines\t',
  '\u007f\u0080\u00ff',
  'é',
  'e\u0301',
  'a\u0300\u0301\u0302\u0303',
  '\ufeffbyte order mark',
  '\ufffd',
  '\ufffe\uffff',
  '\ud7ff\ue000',
  '🌱',
  '👩🏽‍🌾',
  '\u{10000}\u{10ffff}',
  'שלום\u202e',
  '日本語',
  `'"\`\\;--%_?1`,
  'null',
  '0123',
  '🌵'.repeat(50_000),
]

/**
 * Tests what the comments of `Store` say about creating and deleting plants, as far as test/http/socket/plants-model.test.ts
 * does not: that one creates, gets, lists and deletes any plants on every store.
 */
export function plantsContract({ open }: StoreUnderTest): void {
  describe('createPlant', () => {
    test('keeps any text to the character', async () => {
      await using opened = await open()
      const user = await createUser(opened.store, 'me')
      const plants = TEXTS.map((text, index) => ({ id: BigInt(index), name: text, tag: text }))

      for (const plant of plants) await opened.store.createPlant(user, plant)

      expect(await listAll(opened.store, user)).toStrictEqual(plants)
      expect(await listAll(await opened.reopen(), user)).toStrictEqual(plants)
    })

    test('stores one of many plants with the same id that are created at once', async () => {
      await using opened = await open()
      const user = await createUser(opened.store, 'me')
      const stores = [opened.store, await opened.reopen()]

      const results = await Promise.allSettled(
        stores.flatMap((store, side) =>
          Array.from({ length: 10 }, (_, index) => store.createPlant(user, { id: 1n, name: `${side} ${index}` })),
        ),
      )

      const refused = results.filter((result) => result.status === 'rejected')
      expect(refused.map(({ reason }) => reason.kind)).toEqual(Array(19).fill('plant_exists'))
      expect(await listAll(opened.store, user)).toHaveLength(1)
    })
  })

  describe('deletePlant with a condition', () => {
    const isFern = ({ name }: Plant) => name === 'Fern'

    test('deletes a plant that fulfils the condition, with and without a tag', async () => {
      await using opened = await open()
      const { store } = opened
      const user = await createUser(store, 'me')
      const plants = [
        { id: 1n, name: 'Fern', tag: 'indoor' },
        { id: 2n, name: 'Fern' },
      ]
      for (const plant of plants) await store.createPlant(user, plant)
      const asked: Plant[] = []

      for (const { id } of plants) await store.deletePlant(user, id, (plant) => asked.push(plant) > 0)

      expect(asked).toStrictEqual([{ name: 'Fern', tag: 'indoor' }, { name: 'Fern' }])
      expect(await listAll(store, user)).toEqual([])
    })

    test('deletes a plant once if several requests delete it at once', async () => {
      await using opened = await open()
      const { store } = opened
      const other = await opened.reopen()
      const user = await createUser(store, 'me')
      await store.createPlant(user, { id: 1n, name: 'Fern' })

      const outcomes = await outcomesOf([store, store, other].map((each) => each.deletePlant(user, 1n, isFern)))

      expect(outcomes.toSorted()).toEqual(['done', 'plant_not_found', 'plant_not_found'])
    })

    test('keeps a plant that replaces the expected one in the same group', async () => {
      await using opened = await open()
      const { store } = opened
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

    test('keeps a plant by which another opening replaces the expected one', async () => {
      await using opened = await open()
      const { store } = opened
      const other = await opened.reopen()
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

    test('deletes without it if the plant has changed, although an equal delete with a condition is refused', async () => {
      await using opened = await open()
      const { store } = opened
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
