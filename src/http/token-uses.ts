import { AppError } from '../domain/error.ts'
import type { Store } from '../domain/store.ts'
import type { Caller, TokenId } from '../domain/token.ts'
import type { Logger } from '../log.ts'

/** How often the server writes the uses of tokens. */
const FLUSH_EVERY_MS = 5000

/** The store gets a token's last use at most this often. So "last used" is exact to this. */
export const TOKEN_USE_RESOLUTION_MS = 60_000

/**
 * Records uses of tokens. Every few seconds it writes them to the store together, so that no request waits for it. A failure is
 * logged, and then the next use of each of these tokens is recorded again.
 */
export function recordTokenUses(store: Pick<Store, 'touchTokens'>, log: Logger, nowMs: () => number) {
  let unwritten = new Map<TokenId, number>()
  /** Recent uses, written or not: `lastUsedAtMs` of a cached token is older. */
  const recent = new Map<TokenId, number>()

  const flush = async (): Promise<void> => {
    const oldestMs = nowMs() - TOKEN_USE_RESOLUTION_MS
    for (const [id, atMs] of recent) if (atMs < oldestMs) recent.delete(id)
    if (unwritten.size === 0) return
    const uses = unwritten
    unwritten = new Map()
    try {
      await store.touchTokens(uses)
    } catch (error) {
      for (const id of uses.keys()) recent.delete(id)
      // An error of a store that has failed has no cause: the failure was logged before.
      const reason = String(error instanceof AppError ? (error.cause ?? error.kind) : error)
      log.warn({ reason }, 'the last use of tokens could not be written')
    }
  }
  const timer = setInterval(() => void flush(), FLUSH_EVERY_MS)

  return {
    /** Records that a request used this token now. */
    recordUse({ id, lastUsedAtMs }: Caller): void {
      // A token of a file is not in the store.
      if (typeof id === 'string') return
      const atMs = nowMs()
      const latestMs = recent.get(id) ?? lastUsedAtMs
      // A clock that was ahead by mistake has left a use in the future. It does not count.
      if (latestMs !== undefined && Math.abs(atMs - latestMs) < TOKEN_USE_RESOLUTION_MS) return
      recent.set(id, atMs)
      unwritten.set(id, atMs)
    },
    /** Writes all uses that are not written yet. */
    flush,
    stop: () => clearInterval(timer),
  }
}
