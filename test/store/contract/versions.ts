import { describe, expect, test } from 'bun:test'
import type { Store } from '../../../src/domain/store.ts'
import type { UserId } from '../../../src/domain/token.ts'
import { runElsewhere } from '../../support/elsewhere.ts'
import { runPlantstore } from '../../support/executable.ts'
import type { StoreUnderTest } from '../../support/stores.ts'
import { until } from '../../support/until.ts'
import { CREATED_AT_MS, createToken, createUser, listAll, newToken } from '../fixtures.ts'

type Write = (store: Store) => Promise<unknown>
type Changed = 'plants' | 'tokens' | 'both'

/** Each write that changes the store of `openUsed`, and which data of user `me` it changes. */
const CHANGES: readonly (readonly [name: string, changed: Changed, write: Write])[] = [
  ['createPlant', 'plants', (store) => store.createPlant(1, { id: 2n, name: 'Ivy' })],
  ['deletePlant', 'plants', (store) => store.deletePlant(1, 1n)],
  ['revokeTokens by id', 'tokens', (store) => store.revokeTokens({ id: 1 }, CREATED_AT_MS)],
  ['revokeTokens by user', 'tokens', (store) => store.revokeTokens({ userName: 'me' }, CREATED_AT_MS)],
  ['rotateToken', 'tokens', (store) => store.rotateToken(1, newToken('me'), 0)],
  ['setUserBlock', 'tokens', (store) => store.setUserBlock('me', CREATED_AT_MS)],
  ['deleteUser', 'both', (store) => store.deleteUser('me')],
]

/** Tests what the comments of `Store` say about versions. */
export function versionsContract({ open, othersSeenWithinMs }: StoreUnderTest): void {
  describe('plantsVersion, tokensVersion and hasSameTokens', () => {
    test('stay while the store is only read and tokens are touched', async () => {
      await using opened = await openUsed(open)
      const { store, me } = opened
      // On PostgreSQL a store also counts its own last change when it reads the changes again.
      await Bun.sleep(othersSeenWithinMs)
      const before = await untilTold(store, me)

      await listAll(store, me)
      await store.findToken(opened.hash)
      await store.listUsers()
      await store.checkIntegrity()
      await (await opened.reopen()).listTokens()
      await store.touchTokens(new Map([[1, CREATED_AT_MS]]), CREATED_AT_MS)

      expect(await untilTold(store, me)).toEqual(before)
      expect(store.hasSameTokens(me, before.tokens ?? Number.NaN)).toBe(true)
    })

    test.each(CHANGES)('change with %s, here and in another opening', async (_, changed, write) => {
      for (const isElsewhere of [false, true]) {
        await using opened = await openUsed(open)
        const { store, me } = opened
        const before = await untilTold(store, me)

        await write(isElsewhere ? await opened.reopen() : store)

        if (isElsewhere) await untilSeen(store, me, before, changed)
        expect(areOver(store, me, before, changed)).toBe(true)
      }
    })

    test('change with creates and revocations of other processes', async () => {
      await using opened = await openUsed(open)
      const { store, me, database } = opened
      const before = await untilTold(store, me)

      await runElsewhere(database, `await store.createPlant(${me}, { id: 2n, name: 'Ivy' })`)
      await runPlantstore(['token', 'create', '--user', 'me', '--database', database])
      await runPlantstore(['token', 'revoke', '1', '--database', database])
      await untilSeen(store, me, before, 'both')

      expect(areOver(store, me, before, 'both')).toBe(true)
      expect((await listAll(store, me)).map(({ name }) => name)).toEqual(['Fern', 'Ivy'])
      expect((await store.listTokens({ userName: 'me' })).map(({ revokedAtMs }) => typeof revokedAtMs)).toEqual([
        'number',
        'undefined',
      ])
    })

    test('of plants stay while the plants of another user change', async () => {
      await using opened = await openUsed(open)
      const { store, me, you } = opened
      const before = (await untilTold(store, me)).plants

      await store.createPlant(you, { id: 1n, name: 'Fern' })
      await Promise.all([2n, 3n, 4n].map((id) => store.createPlant(you, { id, name: 'Fern' })))
      await store.deletePlant(you, 1n)

      expect((await untilTold(store, me)).plants).toBe(before)
    })
  })

  /** The versions, as soon as the store can tell them. */
  async function untilTold(store: Store, user: UserId) {
    await until('the store knows its versions', () => store.tokensVersion())
    return told(store, user)
  }

  /** The versions, once they show the change of another process, or ought to. */
  async function untilSeen(store: Store, user: UserId, before: Told, changed: Changed) {
    const deadlineMs = performance.now() + othersSeenWithinMs
    await until('it is seen', () => performance.now() >= deadlineMs || areOver(store, user, before, changed))
    return told(store, user)
  }
}

/** A store with user `me`, whose number is 1, with one token and one plant, and user `you`. */
async function openUsed(open: StoreUnderTest['open']) {
  const opened = await open()
  const { hash, token } = await createToken(opened.store, 'me')
  const you = await createUser(opened.store, 'you')
  await opened.store.createPlant(token.userId, { id: 1n, name: 'Fern' })
  expect([token.userId, token.id]).toEqual([1, 1])
  return { ...opened, hash, me: token.userId, you }
}

type Told = ReturnType<typeof told>

const told = (store: Store, user: UserId) => ({ plants: store.plantsVersion(user), tokens: store.tokensVersion() })

/** Whether what was read as of `before` may not be used any more. */
function areOver(store: Store, user: UserId, { plants, tokens }: Told, changed: Changed): boolean {
  const arePlantsOver = plants === undefined || plants !== store.plantsVersion(user)
  const areTokensOver = tokens === undefined || !store.hasSameTokens(user, tokens)
  return (changed === 'tokens' || arePlantsOver) && (changed === 'plants' || areTokensOver)
}
