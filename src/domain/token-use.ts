import type { Store } from './store.ts'
import type { Token, TokenId } from './token.ts'

/** How exact "last used" is: it is written at most this often for a token. */
export const TOKEN_USE_RESOLUTION_MS = 60_000

type TouchTokens = Store['touchTokens']

/** The uses that were noted and not written yet. */
export type TokenUses = ReturnType<typeof collectTokenUses>

/** Collects which tokens were used, to be written later and together: never on a request's way. */
export function collectTokenUses(touchTokens: TouchTokens, nowMs: () => number) {
  let usedAtMs = new Map<TokenId, number>()

  return {
    /** Notes that a request came with this token. */
    note(token: Token): void {
      const atMs = nowMs()
      const isRecent = token.lastUsedAtMs !== undefined && atMs - token.lastUsedAtMs < TOKEN_USE_RESOLUTION_MS
      if (!isRecent && !usedAtMs.has(token.id)) usedAtMs.set(token.id, atMs)
    },
    /** Writes what was noted. What cannot be written is noted again by the token's next use. */
    async flush(): Promise<void> {
      const uses = usedAtMs
      if (uses.size === 0) return
      usedAtMs = new Map()
      await touchTokens(uses)
    },
  }
}
