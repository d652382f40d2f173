import { describe, expect } from 'bun:test'
import { INT64_MAX } from '../../../src/domain/int64.ts'
import { until } from '../../support/until.ts'
import { CREATED_AT_MS, createToken, createUser, listAll } from '../fixtures.ts'
import type { TestedStore } from './test-store.ts'

/** Tests that versions stay where the comments of `Store` let them. The model of test/http proves that each change is seen. */
export function versionsContract({ test, othersSeenWithinMs }: TestedStore): void {
  describe('versions', () => {
    test('stay while the store is read, tokens are touched, and plants of others change', async ({ store, reopen }) => {
      const { hash, token } = await createToken(store, 'me')
      const you = await createUser(store, 'you')
      const told = async () => {
        await until('the store knows its versions', () => store.tokensVersion())
        return { plants: store.plantsVersion(token.userId), tokens: store.tokensVersion() }
      }
      // On PostgreSQL a store also counts its own last change when it reads the changes again.
      await Bun.sleep(othersSeenWithinMs)
      const before = await told()

      await listAll(store, token.userId)
      await store.findToken(hash)
      await store.listUsers()
      await store.checkIntegrity()
      await (await reopen()).listTokens()
      await store.touchTokens(new Map([[1, CREATED_AT_MS]]), CREATED_AT_MS)
      await Promise.all([2n, 3n, 4n].map((id) => store.createPlant(you, { id, name: 'Fern' })))
      await store.deletePlant(you, 2n)

      expect(await told()).toEqual(before)
      expect(store.hasSameTokens(token.userId, before.tokens ?? Number.NaN)).toBe(true)
    })

    test('tell that a list up to an id is the same since then, if they are known', async ({ store }) => {
      const [me, you] = [await createUser(store, 'me'), await createUser(store, 'you')]
      await store.createPlant(me, { id: 5n, name: 'Fern' })
      await store.deletePlant(me, 5n)
      const before = store.plantsVersion(me)

      for (const ids of [[6n], [8n, 7n, INT64_MAX], [10n]]) {
        const [create, ...puts] = ids.map((id) => ({ id, name: 'Ivy' }))
        await Promise.all([create && store.createPlant(me, create), ...puts.map((plant) => store.putPlant(me, plant))])
        await store.createPlant(you, { id: ids[0] ?? 0n, name: 'Ivy' })
      }
      await store.deletePlant(you, 6n)
      // Refused writes change nothing.
      const moss = { id: 6n, name: 'Moss' }
      const put = [store.putPlant(me, { ...moss, id: 1n }, 'some'), store.putPlant(me, moss, () => false)]
      await Promise.allSettled([...put, store.createPlant(me, moss), store.deletePlant(me, 1n)])

      // A busy machine looks for commits of other processes too late at times: then nothing is known.
      const known = () => until('the store knows again', () => before === undefined || store.plantsVersion(me))
      await known()
      const isSame = [5n, 6n, 7n, 9n, INT64_MAX].map((above) => store.isUnchangedUpTo(me, before ?? 0, above))
      expect(isSame).toEqual([before !== undefined, false, false, false, false])
      // A put that replaces a plant changes no list that ends before it. A delete may have taken the plant that followed the list.
      const changes = [
        [() => store.putPlant(me, { id: 10n, name: 'Moss' }), before !== undefined],
        [() => store.deletePlant(me, 10n), false],
      ] as const
      for (const [change, changesNoList] of changes) {
        const between = Number(await known())
        await change()
        await known()
        expect([5n, 10n].map((above) => store.isUnchangedUpTo(me, between, above))).toEqual([changesNoList, false])
      }
    })
  })
}
