import { describe, expect, test } from 'bun:test'
import { TOKEN_CHANGES_SEEN_WITHIN_MS } from '../../../src/domain/store.ts'
import { watchTokens } from '../../../src/store/postgres/revisions.ts'

describe('what is known of changes of tokens', () => {
  test('does not count any more before TOKEN_CHANGES_SEEN_WITHIN_MS have passed since the database was asked', async () => {
    let nowMs = 0
    const answer = Promise.withResolvers<bigint>()
    const answers = [answer.promise, new Promise<bigint>(() => {})]
    const revisions = watchTokens(
      () => answers.shift() ?? Promise.reject(new Error('it was asked too often')),
      () => nowMs,
    )
    const renewed = revisions.renew()
    // The answer is as of the question, however long it takes.
    nowMs = TOKEN_CHANGES_SEEN_WITHIN_MS / 2
    answer.resolve(7n)
    await renewed

    expect(TOKEN_CHANGES_SEEN_WITHIN_MS).toBe(1000)
    expect(revisions.tokens()).toBe(1)
    nowMs = TOKEN_CHANGES_SEEN_WITHIN_MS - 1
    expect(revisions.tokens()).toBeUndefined()
  })
})
