import { describe, expect, test } from 'bun:test'
import { PAGE_ROWS, type Store } from '../../../src/domain/store.ts'
import type { Token } from '../../../src/domain/token.ts'
import type { StoreUnderTest } from '../../support/stores.ts'
import { CREATED_AT_MS, closeNow, createToken, newToken } from '../fixtures.ts'
import { rejectionOf } from '../rejection.ts'

const REVOKED_AT_MS = CREATED_AT_MS + 5000
const FAR_FUTURE_MS = CREATED_AT_MS + 36_500 * 86_400_000
const FIRST = { ifNone: true }

/** Tests what the comments of `Store` say about creating, finding and listing tokens. */
export function tokensContract({ open }: StoreUnderTest): void {
  describe('createTokens and findToken', () => {
    test('keep everything of a token but its hash', async () => {
      await using opened = await open()
      const { hash } = newToken('me')

      const created = await opened.store.createTokens([
        newToken('me', { hash, scope: 'read', label: "Ana's 🌱 'phone'", expiresAtMs: FAR_FUTURE_MS }),
      ])

      expect(created).toEqual({ created: 1, firstId: expect.any(Number), newUsers: ['me'] })
      expect(await opened.store.findToken(hash)).toStrictEqual({
        id: created.firstId,
        userId: expect.any(Number),
        userName: 'me',
        scope: 'read',
        label: "Ana's 🌱 'phone'",
        createdAtMs: CREATED_AT_MS,
        expiresAtMs: FAR_FUTURE_MS,
        revokedAtMs: undefined,
        lastUsedAtMs: undefined,
        replacedBy: undefined,
        userBlockedAtMs: undefined,
      })
      const { token } = await createToken(opened.store, 'me')
      expect(token).toMatchObject({ scope: 'write', label: undefined, expiresAtMs: undefined })
      expect(await opened.store.findToken(newToken('me').hash)).toBeUndefined()
    })

    test('createTokens keeps the order of tokens in their ids, and makes each new user once, as old as the first token', async () => {
      await using opened = await open()
      const { store } = opened
      await createToken(store, 'me')
      const wanted = ['you', 'me', 'you', 'Me'].map((userName, index) =>
        newToken(userName, {
          scope: index === 0 ? 'read' : 'write',
          label: index === 1 ? 'laptop' : undefined,
          createdAtMs: CREATED_AT_MS + 1 + index,
          expiresAtMs: index === 2 ? FAR_FUTURE_MS : undefined,
        }),
      )

      const { firstId, newUsers } = await store.createTokens(wanted)

      expect(newUsers).toEqual(['you', 'Me'])
      const found = await Promise.all(wanted.map(({ hash }) => store.findToken(hash)))
      expect(found).toMatchObject(wanted.map(({ hash: _, ...token }, index) => ({ ...token, id: firstId + index })))
      expect(await store.listTokens({ after: firstId - 1 })).toEqual(found as readonly Token[])
      expect(await store.listUsers()).toMatchObject([
        { name: 'Me', createdAtMs: CREATED_AT_MS + 4, tokens: 1 },
        { name: 'me', createdAtMs: CREATED_AT_MS, tokens: 2 },
        { name: 'you', createdAtMs: CREATED_AT_MS + 1, tokens: 2 },
      ])
    })

    test('createTokens stores the tokens that are missing, and leaves the others as they are', async () => {
      await using opened = await open()
      const { store } = opened
      const { hash, token } = await createToken(store, 'me', { expiresAtMs: CREATED_AT_MS, label: 'old' })
      const { hash: rotated, token: old } = await createToken(store, 'me')
      await store.rotateToken(old.id, newToken('me'), 1000)
      const before = await store.listTokens()
      const added = ['you', 'me', 'you'].map((name) => newToken(name, { scope: 'read', label: name }))
      const [first = newToken(''), ...others] = added
      const tokens = [newToken('me', { hash, label: 'new' }), first, newToken('me', { hash: rotated }), ...others]

      expect(await store.createTokens(tokens)).toMatchObject({ created: 3, newUsers: ['you'] })
      const list = await store.listTokens()
      expect(list.slice(0, before.length)).toEqual([...before])
      expect(list[0]).toEqual(token)
      expect(list.slice(before.length)).toMatchObject(added.map(({ hash: _, ...facts }) => facts))
      expect(await store.findToken(first.hash)).toEqual(list[before.length])
      expect(await store.createTokens(tokens)).toMatchObject({ created: 0, newUsers: [] })
      expect(await store.listTokens()).toEqual(list)
    })

    test.each([
      ['has another user', 'you', 'write', false],
      ['has another scope', 'me', 'read', false],
      ['is revoked', 'me', 'write', true],
    ] as const)('createTokens stores nothing if a stored token %s', async (_, userName, scope, isRevoked) => {
      await using opened = await open()
      const { store } = opened
      const { hash, token } = await createToken(store, 'me')
      if (isRevoked) await store.revokeTokens({ id: token.id }, REVOKED_AT_MS)
      const before = await store.listTokens()
      const refused = { index: 1, stored: before[0] as Token }

      const imported = await store.createTokens([newToken('they'), newToken(userName, { hash, scope }), newToken('me')])

      expect(imported).toMatchObject({ created: 0, newUsers: [], refused })
      expect(await store.listTokens()).toEqual(before)
      expect(await store.listUsers()).toMatchObject([{ name: 'me' }])
    })

    test('createTokens of the same tokens from two openings at once stores each one once', async () => {
      await using opened = await open()
      const stores = [opened.store, await opened.reopen()]
      const tokens = Array.from({ length: 100 }, (_, index) => newToken(`${index % 3}`))

      const imported = await Promise.all(stores.map((store) => store.createTokens(tokens)))

      expect(imported.map(({ created }) => created).sort()).toEqual([0, 100])
      expect(await opened.store.listTokens()).toHaveLength(100)
    })

    test('createTokens with ifNone creates one token of many calls at once, and none beside a token in any state', async () => {
      await using opened = await open()
      const stores = [opened.store, await opened.reopen()]

      const firsts = await Promise.all(
        [0, 1, 2, 3].map((index) => (stores[index % 2] ?? opened.store).createTokens([newToken('me')], FIRST)),
      )

      expect(firsts.map(({ created }) => created).toSorted()).toEqual([0, 0, 0, 1])
      expect(await opened.store.listTokens()).toMatchObject([{ userName: 'me' }])
      await opened.store.revokeTokens({ userName: 'me' }, REVOKED_AT_MS)
      expect(await opened.store.createTokens([newToken('you')], FIRST)).toMatchObject({ created: 0 })
      expect(await opened.store.listUsers()).toMatchObject([{ name: 'me', tokens: 1 }])
    })

    test('of one name from two openings at once make one user', async () => {
      await using opened = await open()
      const stores = [opened.store, await opened.reopen()]

      const created = await Promise.all(
        [0, 1, 2, 3].map((index) => (stores[index % 2] ?? opened.store).createTokens([newToken('me')])),
      )

      expect(created.flatMap(({ newUsers }) => newUsers)).toEqual(['me'])
      expect(new Set(created.map(({ firstId }) => firstId)).size).toBe(4)
      const owners = (await opened.store.listTokens({ userName: 'me' })).map(({ userId }) => userId)
      expect(new Set(owners).size).toBe(1)
    })

    test('show a token, its use and its revocation at once in another opening, and after all were closed', async () => {
      await using opened = await open()
      const other = await opened.reopen()

      const { hash, token } = await createToken(opened.store, 'me', { expiresAtMs: CREATED_AT_MS })
      expect(await other.findToken(hash)).toEqual(token)
      await other.touchTokens(new Map([[token.id, CREATED_AT_MS + 1]]), CREATED_AT_MS + 1)
      expect(await opened.store.findToken(hash)).toMatchObject({ lastUsedAtMs: CREATED_AT_MS + 1 })
      await other.revokeTokens({ id: token.id }, REVOKED_AT_MS)
      expect(await opened.store.findToken(hash)).toMatchObject({ revokedAtMs: REVOKED_AT_MS })

      await closeNow(opened.store)
      await closeNow(other)
      expect(await (await opened.reopen()).findToken(hash)).toEqual({
        ...token,
        lastUsedAtMs: CREATED_AT_MS + 1,
        revokedAtMs: REVOKED_AT_MS,
      })
    })
  })

  describe('listTokens', () => {
    test('lists all tokens or those of a user, in any state, by ascending id', async () => {
      await using opened = await open()
      const { token: first } = await createToken(opened.store, 'you')
      const { token: second } = await createToken(opened.store, 'me', { expiresAtMs: CREATED_AT_MS })
      const { token: third } = await createToken(opened.store, 'you', { scope: 'read' })
      await opened.store.revokeTokens({ id: third.id }, REVOKED_AT_MS)
      const revoked = { ...third, revokedAtMs: REVOKED_AT_MS }

      expect(first.id < second.id && second.id < third.id).toBe(true)
      expect(await opened.store.listTokens()).toEqual([first, second, revoked])
      expect(await opened.store.listTokens({ userName: 'you' })).toEqual([first, revoked])
      expect(await opened.store.listTokens({ userName: 'me' })).toEqual([second])
    })

    test('lists at most limit tokens with larger ids than after, and PAGE_ROWS tokens without a limit', async () => {
      await using opened = await open()
      const { store } = opened
      await store.createTokens(Array.from({ length: PAGE_ROWS + 1 }, (_, index) => newToken(`${index % 2}`)))
      const idsOf = async (page?: Parameters<Store['listTokens']>[0]) =>
        (await store.listTokens(page)).map(({ id }) => id)
      const ids = await idsOf({ limit: PAGE_ROWS + 2 })
      const ofUser = await idsOf({ userName: '1', limit: PAGE_ROWS })

      expect(ids).toHaveLength(PAGE_ROWS + 1)
      expect(await idsOf()).toEqual(ids.slice(0, PAGE_ROWS))
      expect(await idsOf({ after: ids[2] })).toEqual(ids.slice(3))
      expect(await idsOf({ after: ids[2], limit: 2 })).toEqual(ids.slice(3, 5))
      expect(await idsOf({ userName: '1', after: ofUser[2], limit: 2 })).toEqual(ofUser.slice(3, 5))
      expect(await idsOf({ after: ids.at(-1) })).toEqual([])
      expect(await idsOf({ userName: '1', after: ids.at(-1) })).toEqual([])
    })

    test('is empty in an empty store, and rejects with user_not_found for an unknown name', async () => {
      await using opened = await open()

      expect(await opened.store.listTokens()).toEqual([])
      expect(await rejectionOf(opened.store.listTokens({ userName: 'me' }))).toMatchObject({ kind: 'user_not_found' })
    })
  })
}
