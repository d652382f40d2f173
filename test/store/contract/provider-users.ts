import { describe, expect, test } from 'bun:test'
import { providerUserName } from '../../../src/domain/token.ts'
import type { StoreUnderTest } from '../../support/stores.ts'
import { CREATED_AT_MS, outcomesOf } from '../fixtures.ts'
import { rejectionOf } from '../rejection.ts'

const ADA = { name: providerUserName('https://issuer.example.org', 'ada'), createdAtMs: CREATED_AT_MS }
/** More plants than one batch of a deletion. */
const MORE_THAN_A_BATCH = 1200
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
  })
}
