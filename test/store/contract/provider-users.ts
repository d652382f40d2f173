import { describe, expect, test } from 'bun:test'
import type { Plants } from '../../../src/domain/store.ts'
import { NOBODY, providerUserName } from '../../../src/domain/token.ts'
import type { ErrorKind } from '../../../src/error.ts'
import type { StoreUnderTest } from '../../support/stores.ts'
import { CREATED_AT_MS, outcomesOf } from '../fixtures.ts'

const ADA = providerUserName('https://issuer.example.org', 'ada')
const isDefined = (stored: unknown): boolean => stored !== undefined
const isUndefined = (stored: unknown): boolean => stored === undefined
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

  test.each<readonly [title: string, ErrorKind, (plants: Plants) => Promise<unknown>, quotaPlants?: number]>([
    ['a create', 'token_invalid', (plants) => plants.createPlant(NOBODY, fern)],
    ['a create with a quota of 0', 'quota_exceeded', (plants) => plants.createPlant(NOBODY, fern), 0],
    ['a put', 'token_invalid', (plants) => plants.putPlant(NOBODY, fern)],
    ['a put with a quota of 0', 'quota_exceeded', (plants) => plants.putPlant(NOBODY, fern), 0],
    ['a put if there is none', 'token_invalid', (plants) => plants.putPlant(NOBODY, fern, 'none')],
    ['a put whose function holds for none', 'token_invalid', (plants) => plants.putPlant(NOBODY, fern, isUndefined)],
    ['a put if there is some', 'precondition_failed', (plants) => plants.putPlant(NOBODY, fern, 'some')],
    [
      'a put whose function fails for none',
      'precondition_failed',
      (plants) => plants.putPlant(NOBODY, fern, isDefined),
    ],
  ])('%s of a missing user stores nothing, and rejects with %s', async (_, kind, write, quotaPlants = undefined) => {
    await using opened = await open({ quotaPlants })

    expect(await outcomesOf([write(opened.store)])).toEqual([kind])
    expect(await opened.store.listUsers()).toEqual([])
  })
}
