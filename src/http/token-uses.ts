import type { Tokens } from '../domain/store.ts'
import type { Caller, TokenId } from '../domain/token.ts'
import { AppError } from '../error.ts'
import type { Logger } from '../log.ts'

const FLUSH_EVERY_MS = 5000

/** The store gets a token's last use at most this often. So "last used" is exact to this. */
export const TOKEN_USE_RESOLUTION_MS = 60_000

/**
 * Records uses of tokens. Every few seconds it writes them to the store together, so that no request waits for it. Uses that
 * could not be written are logged, and written with the next ones.
 */
export function recordTokenUses(store: Tokens, log: Logger, nowMs: () => number) {
  let unwritten = new Map<TokenId, number>()

  const flush = async (): Promise<void> => {
    if (unwritten.size === 0) return
    const uses = unwritten
    unwritten = new Map()
    try {
      await store.touchTokens(uses, nowMs())
    } catch (error) {
      unwritten = new Map([...uses, ...unwritten])
      // An error of a store that has failed has no cause: the failure was logged before.
      const reason = String(error instanceof AppError ? (error.cause ?? error.kind) : error)
      log.warn({ reason }, 'the last use of tokens could not be written')
    }
  }
  const timer = setInterval(() => void flush(), FLUSH_EVERY_MS)

  return {
    /** Records that a request used this token now, in the token too: caches keep it. */
    recordUse(token: Caller): void {
      const { id, lastUsedAtMs } = token
      const atMs = nowMs()
      // A clock that was ahead by mistake has left a use in the future. It does not count.
      if (lastUsedAtMs !== undefined && Math.abs(atMs - lastUsedAtMs) < TOKEN_USE_RESOLUTION_MS) return
      // A JWT is not stored.
      if (id === undefined) return
      token.lastUsedAtMs = atMs
      unwritten.set(id, atMs)
    },
    flush,
    stop: () => clearInterval(timer),
  }
}
