import { describe, expect } from 'bun:test'
import {
  TIME_MAX_MS,
  USER_NAME,
  USER_NAME_CHARACTERS,
  USER_NAME_LENGTH_MAX,
  USER_NAME_RULE,
} from '../../../src/domain/token.ts'
import { FOUND_MAX } from '../../../src/store/row-rules.ts'
import { newToken } from '../fixtures.ts'
import type { TestedStore } from './test-store.ts'

/** Tests what the comments of `Store` say about its health. */
export function healthContract({ test }: TestedStore): void {
  describe('checkIntegrity', () => {
    test('names the tokens and users with a time that no date can show, and no others', async ({ store }) => {
      const [latestMs, lateMs, early] = [TIME_MAX_MS, TIME_MAX_MS + 1, -TIME_MAX_MS - 1]
      const times = [{ expiresAtMs: latestMs }, { expiresAtMs: lateMs }, { createdAtMs: -latestMs }]
      await store.createTokens([
        newToken('you', { createdAtMs: lateMs }),
        ...[...times, { createdAtMs: early }].map((time) => newToken('me', time)),
      ])
      await store.revokeTokens({ id: 2 }, lateMs)
      await store.touchTokens(new Map([[3, early]]), early)
      await store.setUserBlock('me', lateMs)

      const rule = `is not between ${-TIME_MAX_MS} and ${TIME_MAX_MS}`
      expect((await store.checkIntegrity()).toSorted()).toEqual([
        `token 1: created_at_ms "${lateMs}" ${rule}`,
        `token 2: revoked_at_ms "${lateMs}" ${rule}`,
        `token 3: expires_at_ms "${lateMs}" ${rule}`,
        `token 3: last_used_at_ms "${early}" ${rule}`,
        `token 5: created_at_ms "${early}" ${rule}`,
        `user 1: created_at_ms "${lateMs}" ${rule}`,
        `user 2: blocked_at_ms "${lateMs}" ${rule}`,
      ])
    })

    test('names the users whose names break the rule of names, up to a limit, and no others', async ({ store }) => {
      const valid = ['a', 'x'.repeat(USER_NAME_LENGTH_MAX), ...USER_NAME_CHARACTERS]
      const characters = Array.from({ length: 0xff }, (_, index) => String.fromCharCode(index + 1))
      const invalid = ['', 'x'.repeat(USER_NAME_LENGTH_MAX + 1), 'a b', ...characters.filter((c) => !USER_NAME.test(c))]
      const shown = invalid.slice(0, FOUND_MAX)
      await store.createTokens([...shown, ...valid].map((name) => newToken(name)))
      const problems = shown.map((name, index) => `user ${index + 1}: name "${name}" is not ${USER_NAME_RULE}`)
      expect((await store.checkIntegrity()).toSorted()).toEqual(problems.toSorted())

      await store.createTokens([newToken(invalid[FOUND_MAX] ?? '')])
      expect(await store.checkIntegrity()).toHaveLength(FOUND_MAX)
    })
  })
}
