import { describe, expect, test } from 'bun:test'
import { type Store, TOKEN_CHANGES_SEEN_WITHIN_MS } from '../../../src/domain/store.ts'
import { NOBODY, type UserId } from '../../../src/domain/token.ts'
import { POSTGRES_SERVER } from '../../support/postgres.ts'
import { lacks } from '../../support/requirement.ts'
import { until } from '../../support/until.ts'
import { CREATED_AT_MS, createToken, newToken, rejectionOf } from '../fixtures.ts'
import { openDatabase } from './open-database.ts'

/** More changes than the database tells about. */
const MANY = 100

/** The version of tokens, as soon as the store knows it. */
const versionOf = (store: Store) => until('the version is known', () => store.tokensVersion())

/** Whether the tokens of a user are the same, as soon as the store knows whether they changed in another opening. */
async function areSame(store: Store, user: UserId, since: number): Promise<boolean> {
  const endMs = performance.now() + TOKEN_CHANGES_SEEN_WITHIN_MS
  await until('the change is seen', () => performance.now() >= endMs || !store.hasSameTokens(user, since))
  await versionOf(store)
  return store.hasSameTokens(user, since)
}

/** Two openings of one database, which has seen a change. Users `me` and `you` have a token each. */
async function openTwice() {
  const database = await openDatabase({ isServer: true })
  const { store: other, user: me, open } = database
  const { token } = await createToken(other, 'you')
  await other.setUserBlock('you', undefined)
  return { ...database, me, you: token.userId, yours: token.id, other, store: await open() }
}

type Change = (store: Store, yours: number) => Promise<unknown>
const CHANGES: readonly (readonly [name: string, change: Change])[] = [
  ['revokeTokens by id', (store, id) => store.revokeTokens({ id }, CREATED_AT_MS)],
  ['revokeTokens by user', (store) => store.revokeTokens({ userName: 'you' }, CREATED_AT_MS)],
  ['rotateToken', (store, id) => store.rotateToken(id, newToken('you'), 0)],
  ['setUserBlock', (store) => store.setUserBlock('you', CREATED_AT_MS)],
  ['deleteUser', (store) => store.deleteUser('you')],
]

const LATEST: readonly (readonly [name: string, change: (store: Store) => Promise<unknown>])[] = [
  ['a blocked user', (store) => store.setUserBlock('you', CREATED_AT_MS)],
  ['new tokens', (store) => store.createTokens([newToken('you')])],
  ['a new user', (store) => store.createTokens([newToken('they')])],
]

describe.skipIf(lacks(POSTGRES_SERVER))('a change of tokens in another opening of a PostgreSQL database', () => {
  test.concurrent.each(CHANGES)('with %s is seen for its user and for no other', async (_, change) => {
    await using opened = await openTwice()
    const { store, other, me, you, yours } = opened
    const before = await versionOf(store)

    await change(other, yours)

    expect(await areSame(store, you, before)).toBe(false)
    expect(await areSame(store, me, before)).toBe(true)
  })

  test.concurrent.each(CHANGES)('with %s is not committed before it is announced', async (_, change) => {
    await using opened = await openTwice()
    const { store, other, run, yours } = opened
    const stored = async () => [await store.listTokens(), await store.listUsers()]
    const before = await stored()
    await run('alter table plantstore.counters add constraint refused check (false) not valid')

    await rejectionOf(change(other, yours))

    expect(await stored()).toEqual(before)
  })

  test.concurrent('is not seen if it only creates a token or a user', async () => {
    await using opened = await openTwice()
    const { store, other, you } = opened
    const before = await versionOf(store)

    await other.createTokens([newToken('you')])
    await other.createTokens([newToken('somebody.else')])

    expect(await areSame(store, you, before)).toBe(true)
  })

  test.concurrent('is seen if others follow that the database tells about, and if more follow', async () => {
    for (const following of [10, MANY]) {
      await using opened = await openTwice()
      const { store, other, me, you, yours } = opened
      const before = await versionOf(store)

      await other.revokeTokens({ id: yours }, CREATED_AT_MS)
      await other.createTokens([newToken('they')])
      for (let count = 0; count < following; count++) await other.setUserBlock('they', CREATED_AT_MS)

      expect(await areSame(store, you, before)).toBe(false)
      if (following < MANY) expect(await areSame(store, me, before)).toBe(true)
    }
  })

  test.concurrent('by an executable that changes only the stamp is seen for every user', async () => {
    for (const later of [false, true]) {
      await using opened = await openTwice()
      const { store, other, run, me, you } = opened
      const first = await versionOf(store)
      await other.setUserBlock('me', CREATED_AT_MS)
      expect(await areSame(store, me, first)).toBe(false)
      const before = await versionOf(store)

      await run('update plantstore.counters set tokens_stamp = 8')
      if (later) await other.setUserBlock('me', undefined)

      expect(await areSame(store, you, before)).toBe(false)
    }
  })

  test.concurrent.each(LATEST)('is seen for every user if a standby takes over that lacks %s', async (_, change) => {
    await using opened = await openTwice()
    const { store, other, run, me, you } = opened
    await run('create table row_of_standby as select tokens_stamp, token_changes from plantstore.counters')
    const first = await versionOf(store)
    await change(other)
    // Waits for as long as the store may take to see the change, whichever it is.
    await areSame(store, NOBODY, first)
    const before = await versionOf(store)

    await run(`update plantstore.counters set tokens_stamp = row_of_standby.tokens_stamp,
      token_changes = row_of_standby.token_changes from row_of_standby`)

    expect([await areSame(store, you, before), await areSame(store, me, before)]).toEqual([false, false])
  })
})
