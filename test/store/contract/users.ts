import { describe, expect, test } from 'bun:test'
import type { Store } from '../../../src/domain/store.ts'
import type { UserId } from '../../../src/domain/token.ts'
import type { StoreUnderTest } from '../../support/stores.ts'
import { CREATED_AT_MS, closeNow, createToken, createUser, listAll, listIds } from '../fixtures.ts'
import { rejectionOf } from '../rejection.ts'

/** More than any implementation deletes in one batch. */
const SEVERAL_BATCHES = 1500
/** As many as may wait for the disk at once. */
const AT_ONCE = 500

/** Tests what the comments of `Store` say about users. */
export function usersContract({ open }: StoreUnderTest): void {
  describe('listUsers', () => {
    test('lists all users by name, with what belongs to each', async () => {
      await using opened = await open()
      const { store } = opened
      expect(await store.listUsers()).toEqual([])
      await createUser(store, 'you')
      const me = await createUser(store, 'me')
      await createToken(store, 'me', { createdAtMs: CREATED_AT_MS + 1 })
      await createPlants(store, me, 3)

      expect(await store.listUsers()).toStrictEqual([
        { name: 'me', createdAtMs: CREATED_AT_MS, plants: 3, tokens: 2, blockedAtMs: undefined },
        { name: 'you', createdAtMs: CREATED_AT_MS, plants: 0, tokens: 1, blockedAtMs: undefined },
      ])
    })

    test('lists at most limit users after a name, in the order of bytes, with what belongs to each', async () => {
      await using opened = await open()
      const { store } = opened
      const b = await createUser(store, 'b')
      await createPlants(store, b, 3)
      for (const name of ['a', 'B', 'c-1', 'c_1', 'b']) await createToken(store, name)
      const factsOf = async (page?: Parameters<Store['listUsers']>[0]) =>
        (await store.listUsers(page)).map(({ name, plants, tokens }) => [name, plants, tokens])
      const all = [
        ['B', 0, 1],
        ['a', 0, 1],
        ['b', 3, 2],
        ['c-1', 0, 1],
        ['c_1', 0, 1],
      ]

      expect(await factsOf()).toEqual(all)
      expect(await factsOf({ limit: 3 })).toEqual(all.slice(0, 3))
      expect(await factsOf({ after: 'a', limit: 2 })).toEqual(all.slice(2, 4))
      // No user needs to have the name.
      expect(await factsOf({ after: 'aa' })).toEqual(all.slice(2))
      expect(await factsOf({ after: 'c_1' })).toEqual([])
    })
  })

  describe('deleteUser', () => {
    test('deletes tokens, plants and the name, says how many, and leaves other users as they are', async () => {
      await using opened = await open()
      const { store } = opened
      const { hash, token } = await createToken(store, 'me')
      await createToken(store, 'me')
      const you = await createUser(store, 'you')
      await createPlants(store, token.userId, 3)
      await createPlants(store, you, 2)

      expect(await store.deleteUser('me')).toEqual({ plants: 3, tokens: 2 })

      expect(await store.findToken(hash)).toBeUndefined()
      expect(await listAll(store, token.userId)).toEqual([])
      expect(await listIds(store, you)).toEqual([0n, 1n])
      expect(await store.listUsers()).toMatchObject([{ name: 'you', createdAtMs: CREATED_AT_MS, plants: 2, tokens: 1 }])
    })

    test('rejects with user_not_found for a name that is unknown or was deleted', async () => {
      await using opened = await open()
      await createUser(opened.store, 'me')
      await opened.store.deleteUser('me')

      for (const name of ['me', 'you', '']) {
        expect(await rejectionOf(opened.store.deleteUser(name))).toMatchObject({ kind: 'user_not_found' })
      }
    })

    test('deletes the tokens first, then plants in batches, between which another process can write', async () => {
      await using opened = await open()
      const { store } = opened
      const other = await opened.reopen()
      const { hash, token } = await createToken(store, 'me')
      const you = await createUser(store, 'you')
      await createPlants(store, token.userId, SEVERAL_BATCHES)
      const seen: unknown[] = []
      const onProgress = async (deleted: number) => {
        seen.push({ token: await other.findToken(hash), left: await plantsOf(other, 'me') })
        await other.createPlant(you, { id: BigInt(deleted), name: 'Fern' })
      }

      const deleted = await store.deleteUser('me', { onProgress })

      expect(deleted).toEqual({ plants: SEVERAL_BATCHES, tokens: 1 })
      expect(seen.length).toBeGreaterThan(1)
      expect(seen[0]).toEqual({ token: undefined, left: SEVERAL_BATCHES })
      expect(await store.listUsers()).toMatchObject([
        { name: 'you', createdAtMs: CREATED_AT_MS, plants: seen.length, tokens: 1 },
      ])
    })

    test('can be called again after the store was closed half-way', async () => {
      await using opened = await open()
      const { store } = opened
      const other = await opened.reopen()
      const { token } = await createToken(store, 'me')
      await createPlants(store, token.userId, SEVERAL_BATCHES)
      const onProgress = async (deleted: number) => {
        if (deleted > 0) await closeNow(other)
      }

      const stopped = await other.deleteUser('me', { onProgress }).catch((error: unknown) => error)

      expect(stopped).toBeInstanceOf(Error)
      const left = await plantsOf(store, 'me')
      expect(left).toBeGreaterThan(0)
      expect(await store.deleteUser('me')).toEqual({ plants: left, tokens: 0 })
      expect(await store.listUsers()).toEqual([])
    })

    test('stops between two batches by its signal, says how far it came, and deletes the rest when called again', async () => {
      await using opened = await open()
      const { store } = opened
      const { hash, token } = await createToken(store, 'me')
      await createPlants(store, token.userId, SEVERAL_BATCHES)
      const stopping = new AbortController()
      const told: [deleted: number, total: number][] = []
      const onProgress = (deleted: number, total: number) => {
        told.push([deleted, total])
        if (deleted > 0) stopping.abort(new Error('stopped'))
      }

      const error = await store
        .deleteUser('me', { onProgress, signal: stopping.signal })
        .catch((reason: unknown) => reason)
      const again = await store.deleteUser('me', { signal: stopping.signal }).catch((reason: unknown) => reason)
      const left = await plantsOf(store, 'me')

      expect([error, again]).toEqual([stopping.signal.reason, stopping.signal.reason])
      expect(left).toBeGreaterThan(0)
      expect(told).toEqual([
        [0, SEVERAL_BATCHES],
        [SEVERAL_BATCHES - left, SEVERAL_BATCHES],
      ])
      expect(await store.findToken(hash)).toBeUndefined()
      expect(await store.deleteUser('me')).toEqual({ plants: left, tokens: 0 })
    })

    test('refuses later writes for the user with token_invalid, also in another opening', async () => {
      await using opened = await open()
      const other = await opened.reopen()
      const user = await createUser(opened.store, 'me')
      await opened.store.deleteUser('me')

      for (const store of [opened.store, other]) {
        const created = store.createPlant(user, { id: 1n, name: 'Fern' })
        expect(await rejectionOf(created)).toMatchObject({ kind: 'token_invalid' })
      }
    })

    test('never gives an identifier of a deleted user or token to another, not after all were closed either', async () => {
      await using opened = await open()
      const { token: first } = await createToken(opened.store, 'me')
      await createPlants(opened.store, first.userId, 1)
      await opened.store.deleteUser('me')
      await closeNow(opened.store)
      const store = await opened.reopen()

      const { token: second } = await createToken(store, 'me')

      expect(second.userId).not.toBe(first.userId)
      expect(second.id).not.toBe(first.id)
      const created = store.createPlant(first.userId, { id: 1n, name: 'Fern' })
      expect(await rejectionOf(created)).toMatchObject({ kind: 'token_invalid' })
      expect(await listAll(store, second.userId)).toEqual([])
    })
  })
}

/** All at once: stores that can do writes together are spared much of the time. */
async function createPlants(store: Store, user: UserId, count: number): Promise<void> {
  for (let first = 0; first < count; first += AT_ONCE) {
    const ids = Array.from({ length: Math.min(AT_ONCE, count - first) }, (_, index) => BigInt(first + index))
    await Promise.all(ids.map((id) => store.createPlant(user, { id, name: 'Fern' })))
  }
}

async function plantsOf(store: Store, name: string): Promise<number> {
  const user = (await store.listUsers()).find((each) => each.name === name)
  return user?.plants ?? 0
}
