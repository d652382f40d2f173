import { describe, expect, test } from 'bun:test'
import type { Plants, Store } from '../../../src/domain/store.ts'
import { NOBODY, providerUserName } from '../../../src/domain/token.ts'
import type { ErrorKind } from '../../../src/error.ts'
import { createPlants } from '../../support/many-plants.ts'
import type { StoreUnderTest } from '../../support/stores.ts'
import { CREATED_AT_MS, createToken, createUser, outcomesOf, rejectionOf } from '../fixtures.ts'
import type { TestedStore } from './test-store.ts'

/** More than any implementation deletes in one batch. */
const SEVERAL_BATCHES = 1500
const PLANTS = Array.from({ length: SEVERAL_BATCHES }, (_, id) => ({ id: BigInt(id), name: 'Fern' }))

/** Tests what the comments of `Store` say about users. */
export function usersContract({ test }: TestedStore): void {
  test('a block and a deletion keep the time of the first block', async ({ store }) => {
    const id = await createUser(store, 'me')
    const blocks = [await store.setUserBlock('me', 1), await store.setUserBlock('me', 2)]
    const stop = () => Promise.reject(new Error('stopped'))
    await rejectionOf(store.deleteUser('me', { onProgress: stop }))

    expect(blocks).toEqual([true, false])
    expect(await store.findUser('me')).toEqual({ id, blockedAtMs: 1 })
  })

  describe('deleteUser', () => {
    test('deletes the tokens first, then plants in batches, between which others write, and what they wrote', async ({
      store,
      reopen,
    }) => {
      const other = await reopen()
      const { hash, token } = await createToken(store, 'me')
      const you = await createUser(store, 'you')
      await createPlants(store, token.userId, PLANTS)
      const seen: unknown[] = []
      const onProgress = async (deleted: number) => {
        seen.push({ token: await other.findToken(hash), left: await plantsOf(other, 'me') })
        await other.createPlant(you, { id: BigInt(deleted), name: 'Fern' })
        await createToken(other, 'me')
        // A request whose token was read before: the plants that it stores are deleted, too.
        for (const id of [0n, 1499n]) await other.putPlant(token.userId, { id, name: 'Ivy' })
      }

      const deleted = await store.deleteUser('me', { onProgress })
      const plant = { id: 1n, name: 'Fern' }
      const late = await outcomesOf([other.createPlant(token.userId, plant), other.putPlant(token.userId, plant)])

      expect(late).toEqual(['token_invalid', 'token_invalid'])
      expect(deleted).toEqual({ plants: SEVERAL_BATCHES + 1, tokens: 1 })
      expect(seen.length).toBeGreaterThan(1)
      expect(seen[0]).toEqual({ token: undefined, left: SEVERAL_BATCHES })
      expect(await store.listUsers()).toMatchObject([
        { name: 'you', createdAtMs: CREATED_AT_MS, plants: seen.length, tokens: 1 },
      ])
      expect(await store.listTokens()).toMatchObject([{ userName: 'you' }])
    })

    test('stops between two batches by its signal, and deletes the rest when called again', async ({ store }) => {
      const { hash, token } = await createToken(store, 'me')
      await createPlants(store, token.userId, PLANTS)
      const stopping = new AbortController()
      const told: [deleted: number, total: number][] = []
      const onProgress = (deleted: number, total: number) => {
        told.push([deleted, total])
        if (deleted > 0) stopping.abort(new Error('stopped'))
      }

      const error = await rejectionOf(store.deleteUser('me', { onProgress, signal: stopping.signal }))
      const again = await rejectionOf(store.deleteUser('me', { signal: stopping.signal }))
      const left = await plantsOf(store, 'me')

      expect([error, again]).toMatchObject([{ message: 'stopped' }, { message: 'stopped' }])
      expect(left).toBeGreaterThan(0)
      expect(told).toEqual([
        [0, SEVERAL_BATCHES],
        [SEVERAL_BATCHES - left, SEVERAL_BATCHES],
      ])
      expect(await store.findToken(hash)).toBeUndefined()
      expect(await store.deleteUser('me')).toEqual({ plants: left, tokens: 0 })
    })
  })
}

async function plantsOf(store: Store, name: string): Promise<number> {
  const user = (await store.listUsers()).find((each) => each.name === name)
  return user?.plants ?? 0
}

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
