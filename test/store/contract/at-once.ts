import { describe, expect, test } from 'bun:test'
import type { Store } from '../../../src/domain/store.ts'
import { providerUserName } from '../../../src/domain/token.ts'
import type { StoreUnderTest } from '../../support/stores.ts'
import { CREATED_AT_MS, createUser, listAll, newToken, outcomesOf } from '../fixtures.ts'

/** Enough that a store with group commit commits several together. */
const MANY = 200
const CALLS = 20
const FIRST_USERS = 40
const FIRST = { ifNone: true }

type Call = (store: Store, index: number) => Promise<unknown>

/** Calls of which only one can be done, the refusal of the others, and how many plants and tokens there are then. Before, there is one each. */
const ONE_OF_MANY: readonly (readonly [name: string, call: Call, refusal: string, plants: number, tokens: number])[] = [
  ['createPlant', (store, index) => store.createPlant(1, { id: 2n, name: `${index}` }), 'plant_exists', 2, 1],
  ['deletePlant', (store) => store.deletePlant(1, 1n), 'plant_not_found', 0, 1],
  ['deletePlant with a condition', (store) => store.deletePlant(1, 1n, () => true), 'plant_not_found', 0, 1],
  ['rotateToken', (store) => store.rotateToken(1, newToken('me', { createdAtMs: 1 }), 1), 'rotation_refused', 1, 2],
]

/** Tests what the comments of `Store` say about a call, for many calls at once. */
export function atOnceContract({ open }: StoreUnderTest): void {
  /** Opens a store twice, and calls both sides in turn. */
  async function openTwice() {
    const opened = await open()
    const stores = [opened.store, await opened.reopen()]
    const callAll = (call: Call, count = CALLS) =>
      Array.from({ length: count }, (_, index) => call(stores[index % 2] ?? opened.store, index))
    return { ...opened, callAll }
  }

  describe('many calls at once in two openings', () => {
    test.each(ONE_OF_MANY)('do one %s', async (_, call, refusal, plants, tokens) => {
      await using opened = await openTwice()
      await createUser(opened.store, 'me')
      await opened.store.createPlant(1, { id: 1n, name: 'Fern' })

      const outcomes = await outcomesOf(opened.callAll(call))

      expect(outcomes.toSorted()).toEqual(['done', ...Array(CALLS - 1).fill(refusal)])
      expect(await listAll(opened.store, 1)).toHaveLength(plants)
      expect(await opened.store.listTokens()).toHaveLength(tokens)
    })

    test('of createTokens store each token once, and with ifNone one token', async () => {
      await using opened = await openTwice()
      const tokens = Array.from({ length: 100 }, (_, index) => newToken(`${index % 3}`))
      const created = async (calls: readonly Promise<unknown>[]) =>
        ((await Promise.all(calls)) as { created: number }[]).map(({ created }) => created).toSorted((a, b) => a - b)

      expect(await created(opened.callAll((store) => store.createTokens([newToken('me')], FIRST), 4))).toEqual([
        0, 0, 0, 1,
      ])
      expect(await created(opened.callAll((store) => store.createTokens(tokens), 2))).toEqual([0, 100])
      expect(await created(opened.callAll((store) => store.createTokens([newToken('new')]), 4))).toEqual([1, 1, 1, 1])
      const users = await opened.store.listUsers()
      expect(users.map(({ name, tokens: count }) => [name, count])).toEqual([
        ['0', 34],
        ['1', 33],
        ['2', 33],
        ['me', 1],
        ['new', 4],
      ])
    })

    test('of ensureUser and a first create make each user once, and refuse nobody', async () => {
      await using opened = await openTwice()
      const nameOf = (index: number) => providerUserName('https://issuer.example.org', `${index % FIRST_USERS}`)

      const creates = opened.callAll(async (store, index) => {
        const user = await store.ensureUser(nameOf(index), CREATED_AT_MS)
        await store.createPlant(user, { id: BigInt(index), name: 'Fern' })
      }, 3 * FIRST_USERS)

      expect(await outcomesOf(creates)).toEqual(Array(3 * FIRST_USERS).fill('done'))
      const users = (await opened.store.listUsers()).map(({ name, plants }) => [name, plants])
      expect(users).toEqual(Array.from({ length: FIRST_USERS }, (_, index) => [nameOf(index), 3]).toSorted())
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
  })
}
