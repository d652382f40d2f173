import { LRUCache } from 'lru-cache'
import { AppError } from '../../domain/error.ts'
import type { Store, Version } from '../../domain/store.ts'
import { hashToken, isTokenText, type Token, tokenState } from '../../domain/token.ts'
import type { RequestStatistics } from '../statistics.ts'
import { textBytes } from '../text-bytes.ts'

/** The most memory that the cache may take, in bytes. It drops the token that was not used for the longest time. */
export const TOKEN_CACHE_MAX_BYTES = 12 * 1024 * 1024
/** The measured size of an entry without its key. */
const ENTRY_BYTES = 1024

/** What the cache needs of the service. */
export interface TokenCacheOptions {
  readonly store: Pick<Store, 'findToken' | 'tokensVersion'>
  /** Called with every token that the cache accepts. */
  readonly recordUse: (token: Token) => void
  readonly statistics: Pick<RequestStatistics, 'miss'> | undefined
  /** Milliseconds since 1970-01-01 UTC. */
  readonly nowMs: () => number
}

/** The tokens of `Authorization` lines. */
export type TokenCache = ReturnType<typeof createTokenCache>

/** Caches tokens by the `Authorization` line that carried them. Any change of tokens, by any process, invalidates them all. */
export function createTokenCache({ store, recordUse, statistics, nowMs }: TokenCacheOptions) {
  const entries = new LRUCache<string, { readonly token: Token; readonly version: Version }>({
    maxSize: TOKEN_CACHE_MAX_BYTES,
    sizeCalculation: (_, line) => textBytes(line) + ENTRY_BYTES,
  })

  const isAccepted = (token: Token): boolean => {
    if (tokenState(token, nowMs()) !== 'active') return false
    recordUse(token)
    return true
  }

  return {
    /** The cached token of a line; `undefined` if it was never read, is outdated or has expired. */
    get(line: string | null | undefined): Token | undefined {
      const entry = line ? entries.get(line) : undefined
      if (entry === undefined || entry.version !== store.tokensVersion()) return undefined
      return isAccepted(entry.token) ? entry.token : undefined
    },

    /** Reads the token with this text from the store and caches it by its line. Rejects with `token_invalid`. */
    async read(line: string, text: string): Promise<Token> {
      if (!isTokenText(text)) throw new AppError('token_invalid')
      statistics?.miss('callers')
      // Asked before the read: a change during the read makes the entry outdated.
      const version = store.tokensVersion()
      const token = await store.findToken(hashToken(text))
      if (token === undefined || !isAccepted(token)) throw new AppError('token_invalid')
      if (version !== undefined) entries.set(line, { token, version })
      return token
    },
  }
}
