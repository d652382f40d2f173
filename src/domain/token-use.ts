import type { Store } from './store.ts'
import type { Token, TokenId } from './token.ts'

/** The store gets a token's last use at most this often. So "last used" is exact to this. */
export const TOKEN_USE_RESOLUTION_MS = 60_000

type TouchTokens = Store['touchTokens']

/** The uses of tokens that are not in the store yet. */
export type TokenUses = ReturnType<typeof collectTokenUses>

/** Collects the uses of tokens. They are written later and together, so that no request waits for it. */
export function collectTokenUses(touchTokens: TouchTokens, nowMs: () => number) {
  let unwritten = new Map<TokenId, number>()
  /** Recent uses, written or not: `lastUsedAtMs` of a cached token is older. */
  const recent = new Map<TokenId, number>()

  const forgetOld = () => {
    const oldestMs = nowMs() - TOKEN_USE_RESOLUTION_MS
    for (const [id, atMs] of recent) if (atMs < oldestMs) recent.delete(id)
  }

  return {
    /** Records that a request used this token now. */
    recordUse({ id, lastUsedAtMs }: Token): void {
      const atMs = nowMs()
      const latestMs = recent.get(id) ?? lastUsedAtMs
      // A clock that was ahead by mistake has left a use in the future. It does not count.
      if (latestMs !== undefined && Math.abs(atMs - latestMs) < TOKEN_USE_RESOLUTION_MS) return
      recent.set(id, atMs)
      unwritten.set(id, atMs)
    },
    /** Writes all recorded uses. If that fails, the next use of each token is recorded again. */
    async flush(): Promise<void> {
      forgetOld()
      if (unwritten.size === 0) return
      const uses = unwritten
      unwritten = new Map()
      try {
        await touchTokens(uses)
      } catch (error) {
        for (const id of uses.keys()) recent.delete(id)
        throw error
      }
    },
  }
}
