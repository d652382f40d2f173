import type { Store } from './store.ts'
import type { Token, TokenId } from './token.ts'

/** How exact "last used" is: it is written at most this often for a token. */
export const TOKEN_USE_RESOLUTION_MS = 60_000

type TouchTokens = Store['touchTokens']

/** The uses that were noted and not written yet. */
export type TokenUses = ReturnType<typeof collectTokenUses>

/** Collects which tokens were used, to be written later and together: never on a request's way. */
export function collectTokenUses(touchTokens: TouchTokens, nowMs: () => number) {
  let unwritten = new Map<TokenId, number>()
  /** The uses of late, written or not: a token that was looked up before does not know them. */
  const recent = new Map<TokenId, number>()

  const forgetOld = () => {
    const oldestMs = nowMs() - TOKEN_USE_RESOLUTION_MS
    for (const [id, atMs] of recent) if (atMs < oldestMs) recent.delete(id)
  }

  return {
    /** Notes that a request came with this token. */
    note({ id, lastUsedAtMs }: Token): void {
      const atMs = nowMs()
      const latestMs = recent.get(id) ?? lastUsedAtMs
      // A clock that was ahead by mistake leaves a use in the future: that one does not count.
      if (latestMs !== undefined && Math.abs(atMs - latestMs) < TOKEN_USE_RESOLUTION_MS) return
      recent.set(id, atMs)
      unwritten.set(id, atMs)
    },
    /** Writes what was noted. What cannot be written is noted again by the token's next use. */
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
