import { describe, expect } from 'bun:test'
import type { NewPlant, Plant } from '../../../src/domain/plant.ts'
import type { PlantCondition, Store } from '../../../src/domain/store.ts'
import { createUser, listAll, outcomeOf, outcomesOf, rejectionOf } from '../fixtures.ts'
import type { TestedStore } from './test-store.ts'

const isFern = (plant: Plant | undefined) => plant?.name === 'Fern'
const REFUSED = 'precondition_failed'
/** Conditions, and what a put with each resolves to, or why it rejects: if there is a fern, and if there is no plant. */
const CONDITIONS: readonly (readonly [condition: PlantCondition, ifThere: unknown, ifNot: unknown])[] = [
  ['some', false, REFUSED],
  ['none', REFUSED, true],
  [isFern, false, REFUSED],
  [(plant) => !isFern(plant), REFUSED, true],
  [() => true, false, true],
  [() => false, REFUSED, REFUSED],
]
/** More puts of one plant than a group takes, and than could be committed one by one in the time of a write. */
const MANY_PUTS = 2000

/** What each call resolves to, or the kind of its error. */
const resultsOf = (calls: readonly Promise<unknown>[]) => Promise.all(calls.map((call) => call.catch(outcomeOf)))

/** Tests what the comments of `Store` say about puts, and about deletes with a condition, while others write the plant. */
export function plantsContract({ test }: TestedStore): void {
  describe('putPlant', () => {
    test('makes a plant, replaces it as a whole, and resolves to whether it made it', async ({ store }) => {
      const me = await createUser(store, 'me')
      const puts: NewPlant[] = [
        { id: 1n, name: 'Fern', tag: 'indoor' },
        { id: 1n, name: 'Ivy' },
        { id: 1n, name: 'Ivy' },
      ]

      const results: unknown[] = []
      for (const plant of puts) {
        results.push(await store.putPlant(me, plant))
        // A put tries first what the last one did, which changes no refusal.
        results.push(...(await resultsOf([store.putPlant(99, { id: 1n, name: 'Ivy' })])))
      }

      expect(results).toEqual([true, 'token_invalid', false, 'token_invalid', false, 'token_invalid'])
      expect(await listAll(store, me)).toEqual([{ id: 1n, name: 'Ivy' }])
    })

    test('writes only if the stored plant is as demanded', async ({ store }) => {
      const me = await createUser(store, 'me')
      for (const [condition, ifThere, ifNot] of CONDITIONS) {
        await store.createPlant(me, { id: 1n, name: 'Fern' })

        const puts = [1n, 2n].map((id) => store.putPlant(me, { id, name: 'Ivy' }, condition))

        expect(await resultsOf(puts)).toEqual([ifThere, ifNot])
        const stored = await listAll(store, me)
        expect(stored.map(({ name }) => name)).toEqual([
          ifThere === REFUSED ? 'Fern' : 'Ivy',
          ...(ifNot === REFUSED ? [] : ['Ivy']),
        ])
        await Promise.all(stored.map(({ id }) => store.deletePlant(me, id)))
      }
      expect(await resultsOf([store.putPlant(99, { id: 1n, name: 'Ivy' }, 'some')])).toEqual([REFUSED])
    })

    test('and a delete write only the plant of their user, and not the equal one of another', async ({ store }) => {
      const users = [await createUser(store, 'me'), await createUser(store, 'you')] as const
      for (const user of users) for (const id of [1n, 2n, 3n, 4n]) await store.createPlant(user, { id, name: 'Fern' })

      await store.putPlant(users[0], { id: 1n, name: 'Ivy' }, isFern)
      await store.putPlant(users[0], { id: 2n, name: 'Ivy' })
      await store.deletePlant(users[0], 3n, isFern)
      await store.deletePlant(users[0], 4n)

      const [mine, yours] = [await listAll(store, users[0]), await listAll(store, users[1])]
      expect(mine).toEqual([1n, 2n].map((id) => ({ id, name: 'Ivy' })))
      expect(yours).toEqual([1n, 2n, 3n, 4n].map((id) => ({ id, name: 'Fern' })))
    })

    test('of one plant many times at once makes it once, stores the last, and refuses none', async ({
      store,
      reopen,
    }) => {
      const other = await reopen()
      const me = await createUser(store, 'me')
      const putAll = (stores: readonly Store[], count: number, condition?: PlantCondition) =>
        resultsOf(
          Array.from({ length: count }, (_, index) => {
            const side = stores[index % stores.length] ?? store
            return side.putPlant(me, { id: 1n, name: `${index}` }, condition)
          }),
        )

      expect((await putAll([store, other], 100)).toSorted()).toEqual([...Array(99).fill(false), true])
      expect(await putAll([store], MANY_PUTS)).toEqual(Array(MANY_PUTS).fill(false))
      expect(await store.getPlant(me, 1n)).toEqual({ name: `${MANY_PUTS - 1}` })
      expect(await putAll([store, other], 100, 'some')).toEqual(Array(100).fill(false))
      expect(await putAll([store, other], 100, 'none')).toEqual(Array(100).fill(REFUSED))
      await store.deletePlant(me, 1n)
      expect(await putAll([store, other], 100, 'some')).toEqual(Array(100).fill(REFUSED))
      expect((await putAll([store, other], 100, 'none')).toSorted()).toEqual([...Array(99).fill(REFUSED), true])
    })

    test('of one plant in two openings gives no increment twice, and an equal put is like any other', async ({
      store,
      reopen,
    }) => {
      const stores = [store, await reopen()]
      const me = await createUser(store, 'me')
      await store.createPlant(me, { id: 1n, name: '0' })
      const increment = async (index: number): Promise<void> => {
        const side = stores[index % 2] ?? store
        // Each refusal is a success of another one.
        for (let refusals = 0; refusals < 12; refusals++) {
          const { name } = await side.getPlant(me, 1n)
          const put = side.putPlant(me, { id: 1n, name: `${Number(name) + 1}` }, (stored) => stored?.name === name)
          const [result] = await resultsOf([put])
          if (result === false) return
          expect(result).toBe(REFUSED)
        }
      }

      await Promise.all(Array.from({ length: 12 }, (_, index) => increment(index)))
      expect(await store.getPlant(me, 1n)).toEqual({ name: '12' })
      const same = Array.from({ length: 12 }, (_, index) =>
        (stores[index % 2] ?? store).putPlant(me, { id: 1n, name: '13' }, (stored) => stored?.name === '12'),
      )
      expect((await resultsOf(same)).toSorted()).toEqual([false, ...Array(11).fill(REFUSED)])
    })

    test('holds again for a plant that was changed and changed back', async ({ store }) => {
      const me = await createUser(store, 'me')
      await store.createPlant(me, { id: 1n, name: 'Fern' })
      let between: Promise<unknown> | undefined

      const put = store.putPlant(me, { id: 1n, name: 'Moss' }, (stored) => {
        between ??= Promise.all(['Ivy', 'Fern'].map((name) => store.putPlant(me, { id: 1n, name })))
        return isFern(stored)
      })

      expect(await put).toBe(false)
      expect(await between).toEqual([false, false])
      expect(await store.getPlant(me, 1n)).toEqual({ name: 'Moss' })
    })

    test('is done in the order in which all writes were asked for', async ({ store }) => {
      const me = await createUser(store, 'me')
      const ids = Array.from({ length: 50 }, (_, id) => BigInt(id))

      const results = ids.map((id) =>
        resultsOf([
          store.putPlant(me, { id, name: 'first' }),
          store.createPlant(me, { id, name: 'refused' }),
          store.putPlant(me, { id, name: 'second' }, 'some'),
          store.deletePlant(me, id),
          store.putPlant(me, { id, name: 'refused' }, 'some'),
          store.createPlant(me, { id, name: 'third' }),
          store.putPlant(me, { id, name: 'refused' }, 'none'),
          store.putPlant(me, { id, name: 'fourth' }),
          store.deletePlant(me, id),
          store.putPlant(me, { id, name: 'fifth' }, 'none'),
          store.putPlant(me, { id, name: `last ${id}` }),
        ]),
      )

      const [done, exists] = [undefined, 'plant_exists']
      const expected = [true, exists, false, done, REFUSED, done, REFUSED, false, done, true, false]
      expect(await Promise.all(results)).toEqual(ids.map(() => expected))
      expect(await listAll(store, me)).toEqual(ids.map((id) => ({ id, name: `last ${id}` })))
    })

    test('in two openings beside creates and deletes makes as many plants as are deleted or left', async ({
      store,
      reopen,
    }) => {
      const stores = [store, await reopen()]
      const me = await createUser(store, 'me')

      const results: unknown[] = []
      // Few at once, so that none waits too long on a slow database.
      for (let round = 0; round < 10; round++) {
        const plants = [1n, 2n, 3n].map((id) => ({ id, name: `${round}` }))
        const write = (side: Store) =>
          plants.flatMap((plant) => [
            side.putPlant(me, plant),
            side.deletePlant(me, plant.id).then(() => 'deleted'),
            side.createPlant(me, plant).then(() => true),
          ])
        results.push(...(await resultsOf(stores.flatMap(write))))
      }

      const count = (result: unknown) => results.filter((each) => each === result).length
      expect(count(true) - count('deleted')).toBe((await listAll(store, me)).length)
      const others = results.filter((each) => typeof each === 'string' && each !== 'deleted')
      expect(others.filter((each) => each !== 'plant_exists' && each !== 'plant_not_found')).toEqual([])
    })
  })

  describe('deletePlant with a condition', () => {
    test('deletes if there is some plant, and never if there is none', async ({ store }) => {
      const me = await createUser(store, 'me')
      await store.createPlant(me, { id: 1n, name: 'Fern' })

      expect(await resultsOf([store.deletePlant(me, 1n, 'none'), store.deletePlant(me, 2n, 'none')])).toEqual([
        REFUSED,
        'plant_not_found',
      ])
      expect(await resultsOf([store.deletePlant(me, 1n, 'some')])).toEqual([undefined])
      expect(await resultsOf([store.deletePlant(me, 1n, 'some')])).toEqual(['plant_not_found'])
    })

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
