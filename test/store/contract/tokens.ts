import { expect } from 'bun:test'
import { PAGE_ROWS, type Store } from '../../../src/domain/store.ts'
import { CREATED_AT_MS, createToken, findToken, newToken, outcomesOf, rejectionOf } from '../fixtures.ts'
import type { TestedStore } from './test-store.ts'

/** Tests what the comments of `Store` say about tokens, as far as the model of test/http does not. */
export function tokensContract({ test }: TestedStore): void {
  test('listTokens lists at most limit or PAGE_ROWS tokens after an id, of a user or of all', async ({ store }) => {
    await store.createTokens(Array.from({ length: PAGE_ROWS + 1 }, (_, index) => newToken(`${index % 2}`)))
    const idsOf = async (page?: Parameters<Store['listTokens']>[0]) =>
      (await store.listTokens(page)).map(({ id }) => id)
    const ids = await idsOf({ limit: PAGE_ROWS + 2 })
    const ofUser = await idsOf({ userName: '1', limit: PAGE_ROWS })

    expect([ids.length, ofUser.length]).toEqual([PAGE_ROWS + 1, PAGE_ROWS / 2])
    expect(await idsOf()).toEqual(ids.slice(0, PAGE_ROWS))
    expect(await idsOf({ after: ids[2], limit: 2 })).toEqual(ids.slice(3, 5))
    expect(await idsOf({ userName: '1', after: ofUser[2], limit: 2 })).toEqual(ofUser.slice(3, 5))
    expect(await idsOf({ userName: '1', after: ids.at(-1) })).toEqual([])
    expect(await rejectionOf(store.listTokens({ userName: 'you' }))).toMatchObject({ kind: 'user_not_found' })
  })

  test('revokeTokens and rotateToken refuse an id that is gone, and leave the next one alone', async ({ store }) => {
    const { id } = (await createToken(store, 'you')).token
    const next = await createToken(store, 'me')
    await store.deleteUser('you')

    const outcomes = await outcomesOf([
      store.revokeTokens({ id }, CREATED_AT_MS),
      store.rotateToken(id, newToken('me'), 0),
    ])

    expect(outcomes).toEqual(['token_not_found', 'token_not_found'])
    expect(await findToken(store, next.hash)).toEqual(next.token)
  })
}
