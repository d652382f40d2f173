import { describe, expect, test } from 'bun:test'
import type { Store } from '../../../src/domain/store.ts'
import type { UserId } from '../../../src/domain/token.ts'
import type { StoreUnderTest } from '../../support/stores.ts'
import { CREATED_AT_MS, createToken, createUser } from '../fixtures.ts'
import { rejectionOf } from '../rejection.ts'

/** More than any implementation deletes in one batch. */
const SEVERAL_BATCHES = 1500
/** As many as may wait for the disk at once. */
const AT_ONCE = 500

/** Tests what the comments of `Store` say about users. */
export function usersContract({ open }: StoreUnderTest): void {
  describe('deleteUser', () => {
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
