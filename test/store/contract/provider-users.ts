import { describe, expect, test } from 'bun:test'
import type { PlantCondition } from '../../../src/domain/store.ts'
import { NOBODY, providerUserName } from '../../../src/domain/token.ts'
import type { StoreUnderTest } from '../../support/stores.ts'
import { CREATED_AT_MS, createUser, listIds, outcomesOf } from '../fixtures.ts'
import { rejectionOf } from '../rejection.ts'

const ADA = { id: NOBODY, name: providerUserName('https://issuer.example.org', 'ada'), createdAtMs: CREATED_AT_MS }
/** More plants than one batch of a deletion. */
const MORE_THAN_A_BATCH = 1200
const fern = (id: number) => ({ id: BigInt(id), name: 'Fern', tag: 'green' })

/** Tests what the comments of `Store` say about users whom an identity provider knows. */
export function providerUsersContract({ open }: StoreUnderTest): void {
  describe('putPlant of a user by name', () => {
    test.each<readonly [title: string, condition: PlantCondition | undefined, results: readonly unknown[]]>([
      ['without a condition', undefined, [true, false]],
      ['if there is none', 'none', ['precondition_failed', true]],
      ['if a function holds for none', (stored) => stored === undefined, ['precondition_failed', true]],
      ['if there is some', 'some', ['precondition_failed', 'precondition_failed']],
      ['if a function holds for some', (stored) => stored !== undefined, Array(2).fill('precondition_failed')],
    ])('twice at once %s makes one user and plant, or neither', async (_, condition, results) => {
      await using opened = await open()
      for (const stores of [[opened.store], [opened.store, await opened.reopen()]]) {
        const name = providerUserName('https://issuer.example.org', `${stores.length}`)
        const put = (index: number) => (stores[index] ?? opened.store).putPlant({ ...ADA, name }, fern(1), condition)

        const put2 = await Promise.all([0, 1].map((index) => put(index).catch(({ kind }) => kind)))

        expect(put2.toSorted()).toEqual([...results].toSorted())
        const made = results.includes(true) ? [{ name, createdAtMs: CREATED_AT_MS, plants: 1 }] : []
        expect(await opened.store.listUsers({ name })).toMatchObject(made)
        expect(await opened.store.listUsers({ name })).toHaveLength(made.length)
      }
    })

    test('makes no user beyond the quota, finds the plants of a stored one, and refuses a blocked one', async () => {
      await using opened = await open({ quotaPlants: 0 })
      expect(await outcomesOf([opened.store.putPlant(ADA, fern(1))])).toEqual(['quota_exceeded'])
      expect(await opened.store.listUsers()).toEqual([])

      const store = await opened.reopen({ quotaPlants: 1 })
      const put = (id: number, condition?: PlantCondition) => outcomesOf([store.putPlant(ADA, fern(id), condition)])
      expect([await put(1), await put(1), await put(2)]).toEqual([['done'], ['done'], ['quota_exceeded']])
      expect(await put(1, (stored) => stored?.tag === 'green')).toEqual(['done'])
      expect([await put(1, 'some'), await put(1, 'none')]).toEqual([['done'], ['precondition_failed']])
      await store.setUserBlock(ADA.name, CREATED_AT_MS)
      expect(await put(1)).toEqual(['token_invalid'])
    })
  })

  describe('createPlant of a user by name', () => {
    test('stores no user if the quota is 0, and rejects for a stored user as for an id', async () => {
      await using opened = await open({ quotaPlants: 0 })
      const { store } = opened

      expect(await rejectionOf(store.createPlant(ADA, fern(1)))).toMatchObject({ kind: 'quota_exceeded' })
      expect(await store.listUsers()).toEqual([])

      const limited = await opened.reopen({ quotaPlants: 1 })
      const outcomes = await outcomesOf([1, 1, 2].map((id) => limited.createPlant(ADA, fern(id))))
      expect(outcomes).toEqual(['done', 'plant_exists', 'quota_exceeded'])
    })

    test('rejects with token_invalid from the start of a deletion to its end, also if that stops half-way', async () => {
      await using opened = await open()
      const { store } = opened
      await store.createPlant(ADA, fern(0))
      await Promise.all(Array.from({ length: MORE_THAN_A_BATCH }, (_, id) => store.createPlant(1, fern(id + 1))))
      const create = async () => {
        const outcomes = await outcomesOf([store.createPlant(ADA, fern(-1)), store.putPlant(ADA, fern(-1))])
        return [...new Set(outcomes)]
      }
      const stopping = new AbortController()
      const seen: unknown[] = []
      const onProgress = async (deleted: number) => {
        seen.push(...(await create()))
        if (deleted > 0) stopping.abort(new Error('stopped'))
      }

      await rejectionOf(store.deleteUser(ADA.name, { onProgress, signal: stopping.signal }))
      expect([...seen, ...(await create())]).toEqual(['token_invalid', 'token_invalid', 'token_invalid'])
      expect(await store.findUser(ADA.name)).toEqual({ id: 1, blockedAtMs: expect.any(Number) })

      await store.deleteUser(ADA.name)
      expect(await create()).toEqual(['done'])
      expect(await store.findUser(ADA.name)).toEqual({ id: 2, blockedAtMs: undefined })
    })

    test('with an id that is stored is one of that user, and makes a deleted one anew', async () => {
      await using opened = await open()
      const { store } = opened
      const [ada, user] = [
        { ...ADA, id: 1 },
        { ...ADA, id: 2 },
      ]
      await createUser(store, 'me')

      const ids = [1, 2, 3].map(async (id) => [
        await store.createPlant(ada, fern(id)),
        await store.putPlant(ada, fern(id)),
      ])
      expect(await Promise.all(ids)).toEqual(Array(3).fill([undefined, false]))
      expect(await store.listUsers()).toMatchObject([{ name: 'me', plants: 3 }])
      await store.deleteUser('me')
      expect(await store.putPlant(ada, fern(1), (stored) => stored === undefined)).toBe(true)
      const before = store.plantsVersion(2)
      await store.createPlant(ada, fern(2))
      expect(await listIds(store, 2)).toEqual([1n, 2n])
      // Whose list was cached before sees that the write by the old id has changed it.
      expect(before === undefined || store.plantsVersion(2) !== before).toBe(true)
      expect(await store.putPlant(user, fern(1), 'some')).toBe(false)
    })
  })
}
