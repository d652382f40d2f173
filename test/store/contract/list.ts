import { describe, expect, test } from 'bun:test'
import { INT64_MAX, INT64_MIN } from '../../../src/domain/int64.ts'
import { PAGE_TEXT_LENGTH } from '../../../src/domain/store.ts'
import type { StoreUnderTest } from '../../support/stores.ts'
import { createUser, IDS, listAll, listIds } from '../fixtures.ts'

/** What the comments of `Store` say of listing plants. */
export function listContract({ open }: StoreUnderTest): void {
  describe('listPlants', () => {
    test('of a user without plants is empty', async () => {
      await using opened = await open()
      const user = await createUser(opened.store, 'me')

      expect(await listAll(opened.store, user)).toEqual([])
    })

    test('ends a page with the plant that fills it, and only then before the limit', async () => {
      await using opened = await open()
      const user = await createUser(opened.store, 'me')
      const half = { name: 'x'.repeat(PAGE_TEXT_LENGTH / 2 - 1), tag: 'y' }
      const almostHalf = { name: 'x'.repeat(PAGE_TEXT_LENGTH / 2 - 1) }
      for (const [id, plant] of [half, half, almostHalf, half, half, half].entries()) {
        await opened.store.createPlant(user, { id: BigInt(id), ...plant })
      }
      const idsAfter = async (after: bigint | undefined, limit: number) =>
        (await opened.store.listPlants(user, { after, limit })).map(({ id }) => id)

      expect(await idsAfter(undefined, 10)).toEqual([0n, 1n])
      expect(await idsAfter(1n, 10)).toEqual([2n, 3n, 4n])
      expect(await idsAfter(1n, 2)).toEqual([2n, 3n])
      expect(await idsAfter(4n, 10)).toEqual([5n])
      expect(await idsAfter(5n, 10)).toEqual([])
    })

    test('is in ascending order of the id as a number, in whatever order they came', async () => {
      await using opened = await open()
      const user = await createUser(opened.store, 'me')
      for (const id of IDS.toSorted((a, b) => String(a).localeCompare(String(b)))) {
        await opened.store.createPlant(user, { id, name: 'Fern' })
      }

      expect(await listIds(opened.store, user)).toEqual(IDS)
    })

    test.each<[after: bigint | undefined, limit: number, ids: bigint[]]>([
      [undefined, 10, [INT64_MIN, -1n, 0n, 1n, INT64_MAX]],
      [undefined, 2147483647, [INT64_MIN, -1n, 0n, 1n, INT64_MAX]],
      [undefined, 5, [INT64_MIN, -1n, 0n, 1n, INT64_MAX]],
      [undefined, 1, [INT64_MIN]],
      [undefined, 0, []],
      [INT64_MIN, 2, [-1n, 0n]],
      [-2n, 2, [-1n, 0n]],
      [-1n, 10, [0n, 1n, INT64_MAX]],
      [0n, 1, [1n]],
      [1n, 10, [INT64_MAX]],
      [INT64_MAX - 1n, 10, [INT64_MAX]],
      [INT64_MAX, 10, []],
      [INT64_MAX, 0, []],
    ])('after %p with the limit %p holds %p', async (after, limit, ids) => {
      await using opened = await open()
      const user = await createUser(opened.store, 'me')
      for (const id of [INT64_MIN, -1n, 0n, 1n, INT64_MAX]) await opened.store.createPlant(user, { id, name: 'Fern' })

      const page = await opened.store.listPlants(user, { after, limit })

      expect(page.map(({ id }) => id)).toEqual(ids)
    })

    test('page after page holds every plant once, and a page that is not full is the last', async () => {
      await using opened = await open()
      const user = await createUser(opened.store, 'me')
      for (const id of IDS) await opened.store.createPlant(user, { id, name: 'Fern' })

      const pages: bigint[][] = []
      for (let after: bigint | undefined; pages.at(-1)?.length !== 0; after = pages.at(-1)?.at(-1)) {
        const page = await opened.store.listPlants(user, { after, limit: 4 })
        pages.push(page.map(({ id }) => id))
      }

      expect(pages.map((page) => page.length)).toEqual([4, 4, 4, 3, 0])
      expect(pages.flat()).toEqual(IDS)
    })
  })
}
