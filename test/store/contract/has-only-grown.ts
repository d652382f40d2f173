import { describe, expect, test } from 'bun:test'
import { INT64_MAX, INT64_MIN } from '../../../src/domain/int64.ts'
import type { Store, Version } from '../../../src/domain/store.ts'
import type { UserId } from '../../../src/domain/token.ts'
import type { StoreUnderTest } from '../../support/stores.ts'
import { until } from '../../support/until.ts'
import { createUser } from '../fixtures.ts'

type Write = (store: Store) => Promise<unknown>

/** Changes of the plants 1, 5 and 9 of user 1 that change, or may change, a list of the first two plants. */
const OTHERS: readonly (readonly [name: string, write: Write])[] = [
  ['a create below', (store) => store.createPlant(1, { id: 3n, name: 'Ivy' })],
  ['a create at the very beginning', (store) => store.createPlant(1, { id: INT64_MIN, name: 'Ivy' })],
  ['a delete below', (store) => store.deletePlant(1, 1n)],
  ['a delete of the last', (store) => store.deletePlant(1, 5n)],
  ['a delete above', (store) => store.deletePlant(1, 9n)],
  [
    'creates on both sides',
    (store) => Promise.all([7n, 2n, 8n].map((id) => store.createPlant(1, { id, name: 'Ivy' }))),
  ],
  [
    'a create above and its end',
    async (store) => {
      await store.createPlant(1, { id: 10n, name: 'Ivy' })
      await store.deletePlant(1, 10n)
    },
  ],
  ['the end of the user', (store) => store.deleteUser('me')],
]

/** Tests what the comments of `Store` say about plants that have only grown. */
export function hasOnlyGrownContract({ open, othersSeenWithinMs }: StoreUnderTest): void {
  describe('hasOnlyGrown', () => {
    test.each(OTHERS)('is false after %s, here and in another opening', async (_, write) => {
      for (const isElsewhere of [false, true]) {
        await using opened = await openWithPlants(open)
        const { store, me, before } = opened

        await write(isElsewhere ? await opened.reopen() : store)
        if (isElsewhere) await untilSeen(store, me, before)

        for (const _ of [1, 2]) expect(store.hasOnlyGrown(me, before, 5n)).toBe(false)
      }
    })

    test('is true after creates above the id, one by one and together, if versions are known', async () => {
      await using opened = await openWithPlants(open)
      const { store, me, you, before } = opened

      for (const ids of [[6n], [8n, 7n, INT64_MAX], [10n]]) {
        await Promise.all(ids.map((id) => store.createPlant(me, { id, name: 'Ivy' })))
        await store.createPlant(you, { id: ids[0] ?? 0n, name: 'Ivy' })
      }
      await store.deletePlant(you, 6n)

      if (store.plantsVersion(me) !== undefined) expect(store.hasOnlyGrown(me, before, 5n)).toBe(true)
      // Those that were created are not above themselves, nor above what is above them.
      for (const above of [6n, 7n, 9n, INT64_MAX]) expect(store.hasOnlyGrown(me, before, above)).toBe(false)
    })

    test('ignores changes before its version', async () => {
      await using opened = await openWithPlants(open)
      const { store, me, before } = opened

      await store.deletePlant(me, 1n)
      await store.createPlant(me, { id: 2n, name: 'Ivy' })
      const since = store.plantsVersion(me)
      await store.createPlant(me, { id: 20n, name: 'Ivy' })

      expect(store.hasOnlyGrown(me, before, 5n)).toBe(false)
      if (since !== undefined) expect(store.hasOnlyGrown(me, since, 5n)).toBe(true)
    })

    test('stays false after a create below the id, however many creates follow', async () => {
      await using opened = await openWithPlants(open)
      const { store, me, before } = opened

      await store.createPlant(me, { id: 2n, name: 'Ivy' })
      for (let id = 100n; id < 150n; id++) {
        await store.createPlant(me, { id, name: 'Ivy' })
        expect([id, store.hasOnlyGrown(me, before, 5n)]).toEqual([id, false])
      }
    })
  })

  /** Resolves once the change of another opening shows, or ought to. */
  async function untilSeen(store: Store, user: UserId, before: Version): Promise<void> {
    const deadlineMs = performance.now() + othersSeenWithinMs
    await until('it is seen', () => performance.now() >= deadlineMs || !store.hasOnlyGrown(user, before, 5n))
  }
}

/** A store with the plants 1, 5 and 9 of user `me`, whose number is 1, and their version; and user `you`. */
async function openWithPlants(open: StoreUnderTest['open']) {
  const opened = await open()
  const me = await createUser(opened.store, 'me')
  const you = await createUser(opened.store, 'you')
  for (const id of [1n, 5n, 9n]) await opened.store.createPlant(me, { id, name: 'Fern' })
  expect(me).toBe(1)
  // Where it cannot be told, no version is since when it could.
  const before: Version = opened.store.plantsVersion(me) ?? Number.MAX_SAFE_INTEGER
  return { ...opened, me, you, before }
}
