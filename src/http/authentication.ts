import { bearer } from '@elysiajs/bearer'
import { Elysia } from 'elysia'
import { LRUCache } from 'lru-cache'
import { AppError } from '../domain/error.ts'
import type { Version } from '../domain/store.ts'
import { type Caller, hashToken, isTokenText, type Scope, tokenState } from '../domain/token.ts'
import { contextOf } from './observe.ts'
import type { AppOptions } from './options.ts'
import type { AppParts } from './parts.ts'

/** The bearer plugin would also take a token from the query string. No query has a name with an unpaired surrogate. */
const NOWHERE = '\uD800'

/**
 * Gives every route behind it its `caller`: the accepted token. Rejects with `token_missing`, `token_invalid` or
 * `rate_exceeded`, before anything else of the request is checked. A route with `scope: 'write'` refuses tokens of scope
 * `read`. The bearer plugin is case-sensitive and takes `Bearerfoo`, so the header is checked and rewritten before it.
 */
export const authentication = ({ tokens, limits, statistics }: AppParts) => {
  const identify = async (request: Request, text: string) => {
    const context = contextOf(request)
    context.caller ??= await tokens.read(request.headers.get('authorization') ?? '', text)
    await limits?.admit(context.caller, request)
    return { caller: context.caller }
  }
  return new Elysia({ name: 'authentication' })
    .onTransform({ as: 'scoped' }, ({ headers, request }) => {
      const caller = tokens.get(headers.authorization)
      contextOf(request).caller = caller
      if (caller === undefined) headers.authorization = `Bearer ${bearerToken(headers.authorization)}`
      else statistics?.lookUp('callers', 'hits')
    })
    .use(bearer({ extract: { header: 'Bearer', query: NOWHERE, body: NOWHERE } }))
    .derive({ as: 'scoped' }, ({ bearer, request }) => {
      const { caller } = contextOf(request)
      if (caller === undefined || limits !== undefined) return identify(request, bearer ?? '')
      return { caller }
    })
    .macro({
      scope: (scope: Scope) => ({
        transform({ request }) {
          if (scope === 'write' && contextOf(request).caller?.scope !== scope) throw new AppError('scope_insufficient')
        },
      }),
    })
}

/** The scheme in any letter case, then spaces, then a `b64token` (RFC 6750 §2.1). */
const BEARER = /^bearer +([A-Za-z0-9\-._~+/]+=*)$/i

/**
 * One line of credentials (RFC 9110 §11.4): a scheme, then a `token68` or parameters with commas between. Several lines arrive
 * joined by a comma and a space. They do not match, because within credentials no scheme follows a comma. If a second line
 * has parameters alone, it reads as part of the first; it would be no credentials by itself.
 */
const TOKEN = "[!#$%&'*+.^_`|~0-9A-Za-z-]+"
const PARAMETER = `${TOKEN}[ \\t]*=[ \\t]*(?:${TOKEN}|"(?:[^"\\\\]|\\\\.)*")`
const PARAMETERS = `${PARAMETER}(?:[ \\t]*,[ \\t]*${PARAMETER})*`
const CREDENTIALS = new RegExp(`^(${TOKEN})(?: +(?:[A-Za-z0-9\\-._~+/]+=*|${PARAMETERS}))?$`)

/** The token in an `Authorization` line. Credentials of another scheme count as no token (RFC 6750 §3.1). */
function bearerToken(authorization: string | undefined): string {
  if (authorization === undefined) throw new AppError('token_missing')
  const token = BEARER.exec(authorization)?.[1]
  if (token !== undefined) return token
  const scheme = CREDENTIALS.exec(authorization)?.[1]?.toLowerCase()
  throw new AppError(scheme === undefined || scheme === 'bearer' ? 'token_invalid' : 'token_missing')
}

/** The most memory that the cache of tokens may take, in bytes. It drops the token that was not used for the longest time. */
const TOKEN_CACHE_MAX_BYTES = 12 * 1024 * 1024
/** The measured size of an entry without its key. */
const ENTRY_BYTES = 1024

/** Caches tokens by the `Authorization` line that carried them. A change by any process invalidates the tokens of its user. */
export function createTokenCache({ store, recordUse, statistics, nowMs }: AppOptions) {
  const entries = new LRUCache<string, { readonly token: Caller; readonly version: Version }>({
    maxSize: TOKEN_CACHE_MAX_BYTES,
    // Only lines that hold a token come here: they are ASCII, and take a byte for each character.
    sizeCalculation: (_, line) => line.length + ENTRY_BYTES,
  })

  const isAccepted = (token: Caller): boolean => {
    if (tokenState(token, nowMs()) !== 'active') return false
    recordUse(token)
    return true
  }

  const tokens = {
    /** The cached token of a line; `undefined` if it was never read, is outdated or has expired. */
    get(line: string | null | undefined): Caller | undefined {
      const entry = line ? entries.get(line) : undefined
      if (entry === undefined || !store.hasSameTokens(entry.token.userId, entry.version)) return undefined
      return isAccepted(entry.token) ? entry.token : undefined
    },

    /** Reads the token with this text from the store and caches it by its line. Rejects with `token_invalid`. */
    async read(line: string, text: string): Promise<Caller> {
      if (!isTokenText(text)) throw new AppError('token_invalid')
      statistics?.lookUp('callers', 'misses')
      // Asked before the read: a change during the read makes the entry outdated.
      const version = store.tokensVersion()
      const token = await store.findToken(hashToken(text))
      if (token === undefined || !isAccepted(token)) throw new AppError('token_invalid')
      if (version !== undefined) entries.set(line, { token, version })
      return token
    },

    /** Rejects with `token_invalid` if the accepted token of a request has ended meanwhile. */
    async acceptAgain({ headers }: Request): Promise<void> {
      const line = headers.get('authorization') ?? ''
      if (tokens.get(line) === undefined) await tokens.read(line, bearerToken(line))
    },
  }
  return tokens
}
