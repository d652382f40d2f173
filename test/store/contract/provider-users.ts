import { describe, expect, test } from 'bun:test'
import { providerUserName } from '../../../src/domain/token.ts'
import type { StoreUnderTest } from '../../support/stores.ts'
import { CREATED_AT_MS, createToken, createUser, listIds, outcomesOf } from '../fixtures.ts'
import { rejectionOf } from '../rejection.ts'

const ADA = { name: providerUserName('https://issuer.example.org', 'ada'), createdAtMs: CREATED_AT_MS }
/** More plants than one batch of a deletion. */
const MORE_THAN_A_BATCH = 1200
const fern = (id: number) => ({ id: BigInt(id), name: 'Fern', tag: 'green' })

/** Tests what the comments of `Store` say about users whom an identity provider knows. */
export function providerUsersContract({ open }: StoreUnderTest): void {
  describe('createFirstPlant', () => {
    test('stores a missing user with the plant, and later plants for the same user', async () => {
      await using opened = await open()
      const { store } = opened
      await createUser(store, 'me')
      expect(await store.findUser(ADA.name)).toBeUndefined()

      const outcomes = await outcomesOf([1, 2, 1].map((id) => store.createFirstPlant(ADA, fern(id))))

      const found = await store.findUser(ADA.name)
      expect(outcomes).toEqual(['done', 'done', 'plant_exists'])
      expect(found).toEqual({ id: 2, blockedAtMs: undefined })
      expect(await store.getPlant(2, 1n)).toEqual({ name: 'Fern', tag: 'green' })
      expect(await listIds(store, 2)).toEqual([1n, 2n])
      expect(await store.listUsers({ name: ADA.name })).toEqual([
        { ...ADA, plants: 2, tokens: 0, blockedAtMs: undefined },
      ])
      expect(await store.checkIntegrity()).toEqual([])
    })

    test('makes one user of many creates at once in two openings, and loses none', async () => {
      await using opened = await open()
      const stores = [opened.store, await opened.reopen()]
      const ids = Array.from({ length: 40 }, (_, index) => index)

      const outcomes = await outcomesOf(
        ids.map((id) => (stores[id % 2] ?? opened.store).createFirstPlant(ADA, fern(id))),
      )

      expect(new Set(outcomes)).toEqual(new Set(['done']))
      expect(await opened.store.listUsers()).toMatchObject([{ name: ADA.name, plants: 40 }])
    })

    test('stores no user if the quota is 0, and for a stored user rejects as createPlant', async () => {
      await using opened = await open({ quotaPlants: 0 })
      const { store } = opened

      expect(await rejectionOf(store.createFirstPlant(ADA, fern(1)))).toMatchObject({ kind: 'quota_exceeded' })
      expect(await store.listUsers()).toEqual([])

      const limited = await opened.reopen({ quotaPlants: 1 })
      const outcomes = await outcomesOf([1, 1, 2].map((id) => limited.createFirstPlant(ADA, fern(id))))
      expect(outcomes).toEqual(['done', 'plant_exists', 'quota_exceeded'])
    })

    test('rejects with token_invalid for a user whom setUserBlock has made, and stores nothing', async () => {
      await using opened = await open()
      const { store } = opened

      expect(await rejectionOf(store.setUserBlock(ADA.name, 7))).toMatchObject({ kind: 'user_not_found' })
      expect(await store.setUserBlock(ADA.name, 7, true)).toBe(true)
      expect(await store.setUserBlock(ADA.name, 8, true)).toBe(false)

      expect(await rejectionOf(store.createFirstPlant(ADA, fern(1)))).toMatchObject({ kind: 'token_invalid' })
      expect(await store.findUser(ADA.name)).toEqual({ id: 1, blockedAtMs: 7 })
      expect(await store.listUsers()).toEqual([
        { name: ADA.name, createdAtMs: 7, plants: 0, tokens: 0, blockedAtMs: 7 },
      ])
    })

    test('rejects with token_invalid from the start of a deletion to its end, also if that stops half-way', async () => {
      await using opened = await open()
      const { store } = opened
      await store.createFirstPlant(ADA, fern(0))
      await Promise.all(Array.from({ length: MORE_THAN_A_BATCH }, (_, id) => store.createPlant(1, fern(id + 1))))
      const create = () => outcomesOf([store.createFirstPlant(ADA, fern(-1))])
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

    test('shows its plant to every list that begins later', async () => {
      await using opened = await open()
      const { store } = opened
      await store.createFirstPlant(ADA, fern(1))
      const before = store.plantsVersion(1)

      await store.createFirstPlant(ADA, fern(2))

      expect(before !== undefined && before === store.plantsVersion(1)).toBe(false)
      expect(await listIds(store, 1)).toEqual([1n, 2n])
    })
  })

  describe('opening a store for an identity provider', () => {
    test('takes the users whom a provider has signed in, and those with other names', async () => {
      await using opened = await open()
      await opened.store.createFirstPlant(ADA, fern(1))
      await createToken(opened.store, 'oidc')
      await createToken(opened.store, 'OIDC.me')

      const store = await opened.reopen({ hasProvider: true })

      expect(await store.findUser(ADA.name)).toMatchObject({ id: 1 })
    })

    test.each([
      ['a token', ADA.name],
      ['another length', 'oidc.me'],
    ])('rejects with store_unusable if such a user has %s', async (_, name) => {
      await using opened = await open()
      await createToken(opened.store, name)

      expect(await rejectionOf(opened.reopen({ hasProvider: true }))).toMatchObject({
        kind: 'store_unusable',
        message: `A command has made the user ${name}, whom an identity provider seems to know: delete this user.`,
      })
    })
  })
}
