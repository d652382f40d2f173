import { describe, expect, test } from 'bun:test'
import { providerUserName } from '../../../src/domain/token.ts'
import type { StoreUnderTest } from '../../support/stores.ts'
import { CREATED_AT_MS, createToken, outcomesOf } from '../fixtures.ts'
import { rejectionOf } from '../rejection.ts'

const ADA = { name: providerUserName('https://issuer.example.org', 'ada'), createdAtMs: CREATED_AT_MS }
const fern = (id: number) => ({ id: BigInt(id), name: 'Fern', tag: 'green' })

/** Tests what the comments of `Store` say about users whom an identity provider knows. */
export function providerUsersContract({ open }: StoreUnderTest): void {
  describe('createFirstPlant', () => {
    test('stores no user if the quota is 0, and for a stored user rejects as createPlant', async () => {
      await using opened = await open({ quotaPlants: 0 })
      const { store } = opened

      expect(await rejectionOf(store.createFirstPlant(ADA, fern(1)))).toMatchObject({ kind: 'quota_exceeded' })
      expect(await store.listUsers()).toEqual([])

      const limited = await opened.reopen({ quotaPlants: 1 })
      const outcomes = await outcomesOf([1, 1, 2].map((id) => limited.createFirstPlant(ADA, fern(id))))
      expect(outcomes).toEqual(['done', 'plant_exists', 'quota_exceeded'])
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
