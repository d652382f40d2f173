import { describe, expect, test } from 'bun:test'
import { NOBODY, providerUserName } from '../../../src/domain/token.ts'
import type { StoreUnderTest } from '../../support/stores.ts'
import { CREATED_AT_MS, outcomesOf } from '../fixtures.ts'

const ADA = providerUserName('https://issuer.example.org', 'ada')
const fern = { id: 1n, name: 'Fern', tag: 'green' }

/** Tests what the comments of `Store` say about users whom an identity provider knows. */
export function providerUsersContract({ open }: StoreUnderTest): void {
  describe('ensureUser', () => {
    test('stores a user once, whose id stays, and refuses a blocked one', async () => {
      await using opened = await open()
      const { store } = opened

      const ids = await Promise.all([1, 2, 3].map(() => store.ensureUser(ADA, CREATED_AT_MS)))
      expect(ids).toEqual([1, 1, 1])
      await store.setUserBlock(ADA, CREATED_AT_MS)
      expect(await outcomesOf([store.ensureUser(ADA, CREATED_AT_MS)])).toEqual(['token_invalid'])
      await store.deleteUser(ADA)
      expect(await store.ensureUser(ADA, CREATED_AT_MS)).toBe(2)
    })
  })

  test.each([
    ['createPlant', undefined, 'token_invalid'],
    ['putPlant', undefined, 'token_invalid'],
    ['putPlant', 'none', 'token_invalid'],
    ['putPlant', 'some', 'precondition_failed'],
  ] as const)('%s of a user who does not exist, if there is %s, rejects with %s', async (method, condition, kind) => {
    await using opened = await open()
    expect(await outcomesOf([opened.store[method](NOBODY, fern, condition)])).toEqual([kind])
    expect(await opened.store.listUsers()).toEqual([])
  })
}
