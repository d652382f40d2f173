import { describe, expect, test } from 'bun:test'
import type { StoreUnderTest } from '../../support/stores.ts'
import { createUser, listAll, listIds, outcomesOf } from '../fixtures.ts'

/** Enough that a store with group commit commits several together. */
const MANY = 200

/** Tests what the comments of `Store` say about a write, for many writes at once. */
export function writesAtOnceContract({ open }: StoreUnderTest): void {
  describe('many writes at once', () => {
    test('get an answer each, refusals included, and another opening shows the stored plants', async () => {
      await using opened = await open()
      const { store } = opened
      const other = await opened.reopen()
      const user = await createUser(store, 'me')
      for (const id of [1000n, 1001n]) await store.createPlant(user, { id, name: 'Fern' })

      const creates = Array.from({ length: MANY }, (_, id) => store.createPlant(user, { id: BigInt(id), name: 'Ivy' }))
      const others = [
        store.deletePlant(user, 1000n),
        store.deletePlant(user, 2000n),
        store.createPlant(user, { id: 1001n, name: 'Moss' }),
        store.createPlant(user, { id: 1002n, name: 'Moss' }),
      ]

      const [created, rest] = await Promise.all([outcomesOf(creates), outcomesOf(others)])
      expect(created).toEqual(creates.map(() => 'done'))
      expect(rest).toEqual(['done', 'plant_not_found', 'plant_exists', 'done'])
      const stored = [...Array.from({ length: MANY }, (_, id) => BigInt(id)), 1001n, 1002n]
      for (const each of [store, other]) expect(await listIds(each, user)).toEqual(stored)
    })

    test('are done in the order in which they were asked for', async () => {
      await using opened = await open()
      const { store } = opened
      const user = await createUser(store, 'me')
      const ids = Array.from({ length: MANY }, (_, id) => BigInt(id))

      const asked = ids.map((id) => [
        store.createPlant(user, { id, name: 'first' }),
        store.deletePlant(user, id),
        store.createPlant(user, { id, name: 'second' }),
        store.createPlant(user, { id, name: 'third' }),
        store.deletePlant(user, id),
        store.deletePlant(user, id),
        store.createPlant(user, { id, name: `last ${id}` }),
      ])

      const expected = ['done', 'done', 'done', 'plant_exists', 'done', 'plant_not_found', 'done']
      expect(await Promise.all(asked.map(outcomesOf))).toEqual(ids.map(() => expected))
      expect(await listAll(store, user)).toEqual(ids.map((id) => ({ id, name: `last ${id}` })))
    })

    test('of a deleted user are refused with token_invalid, and those of other users are done', async () => {
      await using opened = await open()
      const { store } = opened
      const [me, gone] = [await createUser(store, 'me'), await createUser(store, 'gone')]
      await store.deleteUser('gone')

      const asked = Array.from({ length: MANY }, (_, id) =>
        store.createPlant(id % 2 === 0 ? me : gone, { id: BigInt(id), name: 'Fern' }),
      )

      expect(await outcomesOf(asked)).toEqual(asked.map((_, id) => (id % 2 === 0 ? 'done' : 'token_invalid')))
      expect(await listIds(store, me)).toEqual(Array.from({ length: MANY / 2 }, (_, index) => BigInt(2 * index)))
      expect(await listAll(store, gone)).toEqual([])
    })

    test('return to each caller its own result', async () => {
      await using opened = await open()
      const { store } = opened
      const hash = (index: number) => new Uint8Array(32).fill(index)
      const token = { scope: 'write', label: undefined, createdAtMs: 1, expiresAtMs: undefined } as const

      const created = await Promise.all(
        [0, 1, 2, 3].map((index) => store.createTokens([{ ...token, userName: `${index % 2}`, hash: hash(index) }])),
      )
      const found = await Promise.all([0, 1, 2, 3].map((index) => store.findToken(hash(index))))

      expect(created.map(({ firstId }) => firstId)).toEqual(found.map((each) => each?.id ?? 0))
      expect(created.map(({ newUsers }) => newUsers)).toEqual([['0'], ['1'], [], []])
    })
  })
}
