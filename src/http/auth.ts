import { bearer } from '@elysiajs/bearer'
import { Elysia } from 'elysia'
import { LRUCache } from 'lru-cache'
import { AppError } from '../domain/error.ts'
import type { Revision, Store } from '../domain/store.ts'
import { hashToken, isTokenText, type Token, tokenState } from '../domain/token.ts'
import { contextOf } from './context.ts'

/** The scheme in any letter case, then spaces, then a `b64token` (RFC 6750 §2.1). Two lines arrive joined by a comma. */
const BEARER = /^bearer +([A-Za-z0-9\-._~+/]+=*)$/i

/** The bearer plugin would also take a token from the query string: no query can have a name with a lone surrogate. */
const NOWHERE = '\uD800'

/** Tokens that are looked up once, for as long as nothing about tokens changes. */
export const KNOWN_TOKENS_MAX = 16_384

/** A caller who has shown a token. */
export interface Caller {
  readonly token: Token
  /** As of which the token was looked up. */
  readonly revision: Revision | undefined
}

/** Who gets in. */
export type Access = ReturnType<typeof createAccess>

/** What the check of a token needs: where tokens are, what to do with one that was used, and the time. */
export interface AccessOptions {
  readonly store: Pick<Store, 'findToken' | 'tokensRevision'>
  readonly noteUse: (token: Token) => void
  readonly nowMs: () => number
}

/** Looks tokens up, and remembers whom it knows. */
export function createAccess({ store, noteUse, nowMs }: AccessOptions) {
  const known = new LRUCache<string, Caller>({ max: KNOWN_TOKENS_MAX })

  /** Whether the caller's token still lets in: nothing about tokens has changed since, and its time has not come. */
  const admits = ({ token, revision }: Caller): boolean =>
    revision !== undefined && revision === store.tokensRevision() && admit(token)
  const admit = (token: Token): boolean => {
    if (tokenState(token, nowMs()) !== 'active') return false
    noteUse(token)
    return true
  }

  return {
    admits,
    /** The caller who has this token. Rejects with `token_invalid`. */
    async identify(text: string): Promise<Caller> {
      const caller = known.get(text)
      if (caller !== undefined && admits(caller)) return caller
      if (!isTokenText(text)) throw new AppError('token_invalid')
      const revision = store.tokensRevision()
      const token = await store.findToken(hashToken(text))
      if (token === undefined || !admit(token)) throw new AppError('token_invalid')
      const identified = { token, revision }
      known.set(text, identified)
      return identified
    },
  }
}

/**
 * Gives every route behind it its `caller`. Rejects with `token_missing` or `token_invalid`. The plugin is
 * case-sensitive and takes `Bearerfoo`; so the header is checked and written in its one form before the plugin reads it.
 */
export const authenticated = ({ identify }: Access) =>
  new Elysia({ name: 'authenticated' })
    .derive({ as: 'scoped' }, ({ headers }) => {
      headers.authorization = `Bearer ${bearerToken(headers.authorization)}`
      return {}
    })
    .use(bearer({ extract: { header: 'Bearer', query: NOWHERE, body: NOWHERE } }))
    .resolve({ as: 'scoped' }, async ({ bearer, request }) => {
      const caller = await identify(bearer ?? '')
      contextOf(request).token = caller.token
      return { caller }
    })

/** Rejects with `scope_insufficient` where the token may only list. */
export function requireWrite(token: Token): void {
  if (token.scope !== 'write') throw new AppError('scope_insufficient')
}

function bearerToken(authorization: string | undefined): string {
  if (authorization === undefined) throw new AppError('token_missing')
  const token = BEARER.exec(authorization)?.[1]
  if (token === undefined) throw new AppError('token_invalid')
  return token
}
