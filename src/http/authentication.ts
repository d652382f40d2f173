// Tested in test/http/transcripts/credentials.txt.
import { bearer } from '@elysiajs/bearer'
import { Elysia } from 'elysia'
import { LRUCache } from 'lru-cache'
import type { Version } from '../domain/store.ts'
import { type Caller, hashToken, isTokenText, NOBODY, TOKEN_PREFIX, tokenState } from '../domain/token.ts'
import { AppError } from '../error.ts'
import type { AppOptions, IdentityProvider, Services, TokenCache } from './options.ts'
import { contextOf } from './request-context.ts'

/** The bearer plugin would also take a token from the query string. No query has a name with an unpaired surrogate. */
const NOWHERE = '\uD800'

/**
 * Gives every route behind it its `caller`, the accepted token, with its `scope`, and its `context`. Rejects with `token_missing`,
 * `token_invalid` or `rate_exceeded`, before anything else of the request is checked. A route with `writes: true` refuses tokens of
 * scope `read`, in a `transform`, because Elysia runs the schemas of path and query before any later hook. The bearer plugin is
 * case-sensitive and takes `Bearerfoo`, so the header is checked and rewritten before it.
 */
export const authentication = ({ tokens, countRequest }: Services) =>
  new Elysia({ name: 'authentication' })
    .onTransform({ as: 'scoped' }, ({ headers }) => {
      const token = bearerToken(headers.authorization)
      if (token === undefined) throw refusalOf(headers.authorization)
      headers.authorization = `Bearer ${token}`
    })
    .use(bearer({ extract: { header: 'Bearer', query: NOWHERE, body: NOWHERE } }))
    .derive({ as: 'scoped' }, async ({ bearer = '', request }) => {
      const context = contextOf(request)
      // The search for a cached list may have found it before.
      const caller = context.caller ?? tokens.get(bearer) ?? (await tokens.read(bearer))
      context.caller = caller
      if (countRequest !== undefined) await countRequest(caller)
      const { scope } = caller
      if (scope === undefined) throw new AppError('scope_insufficient', { message: NO_SCOPE })
      return { caller, scope, context }
    })
    .macro({ writes: { transform: requireWrite } })

const NO_SCOPE = 'This token may do nothing here: get one with the scope plants:read or plants:write.'

/** Throws `scope_insufficient` unless the token may write. */
export function requireWrite({ caller }: { readonly caller?: Pick<Caller, 'scope'> }): void {
  if (caller?.scope !== 'write') throw new AppError('scope_insufficient')
}

/** The scheme in any letter case, then spaces, then a `b64token` (RFC 6750 §2.1). */
const BEARER = /^bearer +([A-Za-z0-9\-._~+/]+=*)$/i

/**
 * One line of credentials (RFC 9110 §11.4): a scheme, then a `token68` or parameters with commas between. Several lines arrive
 * joined by a comma and a space. They do not match, because within credentials no scheme follows a comma. If a second line
 * has only parameters, it reads as part of the first; it would be no credentials by itself.
 */
const TOKEN = "[!#$%&'*+.^_`|~0-9A-Za-z-]+"
const PARAMETER = `${TOKEN}[ \\t]*=[ \\t]*(?:${TOKEN}|"(?:[^"\\\\]|\\\\.)*")`
const PARAMETERS = `${PARAMETER}(?:[ \\t]*,[ \\t]*${PARAMETER})*`
const CREDENTIALS = new RegExp(`^(${TOKEN})(?: +(?:[A-Za-z0-9\\-._~+/]+=*|${PARAMETERS}))?$`)

/** What nearly all lines begin with: those with a token of ours, and those with a JWT. */
const USUAL_STARTS = [`Bearer ${TOKEN_PREFIX}`, 'Bearer eyJ']

/** The token in an `Authorization` line, if there is one. It may be malformed. */
export function bearerToken(authorization: string | null | undefined): string | undefined {
  // The regular expression alone would take more than 1 % of the CPU time of a cached list.
  for (const start of USUAL_STARTS) if (authorization?.startsWith(start)) return authorization.slice('Bearer '.length)
  return BEARER.exec(authorization ?? '')?.[1]
}

/** The error of a line without a token: `token_missing` if it has another scheme (RFC 6750 §3.1), and else `token_invalid`. */
function refusalOf(authorization: string | undefined): AppError {
  if (authorization === undefined) return new AppError('token_missing')
  const scheme = CREDENTIALS.exec(authorization)?.[1]?.toLowerCase()
  return new AppError(scheme === undefined || scheme === 'bearer' ? 'token_invalid' : 'token_missing')
}

/** The most memory that the cache of tokens may take, in bytes. It drops the token that was not used for the longest time. */
export const TOKEN_CACHE_MAX_BYTES = 12 * 1024 * 1024
/** The measured size of an entry without its key. */
const ENTRY_BYTES = 1024

type Entry = { readonly token: Caller; readonly version: Version }

/** Tokens are ASCII, and take a byte for each character. A subject may take two. */
const bytesOf = ({ token: { subject = '' } }: Entry, text: string) => text.length + 2 * subject.length + ENTRY_BYTES

/** An entry with this version is never valid, so each request reads it again. */
const NEVER: Version = -1

export function createTokenCache(options: AppOptions): TokenCache {
  const { store, recordUse, statistics, threads, nowMs, provider } = options
  const maxSize = Math.floor(TOKEN_CACHE_MAX_BYTES / threads)
  const entries = new LRUCache<string, Entry>({ maxSize, sizeCalculation: bytesOf })

  const isAccepted = (token: Caller): boolean => {
    if (tokenState(token, nowMs()) !== 'active') return false
    recordUse(token)
    return true
  }

  const readStored = async (text: string): Promise<Caller> => {
    if (!isTokenText(text)) throw new AppError('token_invalid')
    statistics?.lookUp('callers', 'misses')
    // Asked before the read: a change during the read makes the entry outdated.
    const version = store.tokensVersion()
    const token = await store.findToken(hashToken(text))
    if (token === undefined || !isAccepted(token)) throw new AppError('token_invalid')
    if (version !== undefined) entries.set(text, { token, version })
    return token
  }

  /** A JWT that was verified a short time ago is not verified again if only its user may have changed. */
  const readJwt = async ({ verify }: IdentityProvider, text: string): Promise<Caller> => {
    statistics?.lookUp('callers', 'misses')
    const version = store.tokensVersion()
    const cached = entries.get(text)?.token
    const jwt = cached?.expiresAtMs && cached.expiresAtMs > nowMs() ? cached : await verify(text)
    const user = await store.findUser(jwt.userName)
    const token = { ...jwt, userId: user?.id ?? NOBODY, userBlockedAtMs: user?.blockedAtMs }
    if (!isAccepted(token)) throw new AppError('token_invalid')
    entries.set(text, { token, version: (user && token.scope && version) ?? NEVER })
    return token
  }

  const tokens: TokenCache = {
    get(text) {
      const entry = text === undefined ? undefined : entries.get(text)
      if (entry === undefined || !store.hasSameTokens(entry.token.userId, entry.version)) return undefined
      if (!isAccepted(entry.token)) return undefined
      statistics?.lookUp('callers', 'hits')
      return entry.token
    },

    read:
      provider === undefined
        ? readStored
        : (text) => (text.startsWith(TOKEN_PREFIX) ? readStored(text) : readJwt(provider, text)),

    async readTokenAgain({ headers }, { userId, subject }) {
      const text = bearerToken(headers.get('authorization')) ?? ''
      const token = tokens.get(text) ?? (await tokens.read(text))
      // The user of a JWT may be made, or made anew.
      if (token.userId !== userId && subject === undefined) throw new AppError('token_invalid')
      return token
    },
  }
  return tokens
}
