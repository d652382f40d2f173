import { bearer } from '@elysiajs/bearer'
import { Elysia } from 'elysia'
import { AppError } from '../domain/error.ts'
import type { Store } from '../domain/store.ts'
import { hashToken, isTokenText, type Token, tokenState } from '../domain/token.ts'
import { contextOf } from './context.ts'

/** The scheme in any letter case, then spaces, then a `b64token` (RFC 6750 §2.1). Two lines arrive joined by a comma. */
const BEARER = /^bearer +([A-Za-z0-9\-._~+/]+=*)$/i

/** The bearer plugin would also take a token from the query string: no query can have a name with a lone surrogate. */
const NOWHERE = '\uD800'

/** What the check of a token needs: where tokens are, what to do with one that was used, and the time. */
export interface Access {
  readonly findToken: Store['findToken']
  readonly noteUse: (token: Token) => void
  readonly nowMs: () => number
}

/**
 * Gives every route behind it the `token` of the caller. Rejects with `token_missing` or `token_invalid`. The plugin is
 * case-sensitive and takes `Bearerfoo`; so the header is checked and written in its one form before the plugin reads it.
 */
export const authenticated = ({ findToken, noteUse, nowMs }: Access) =>
  new Elysia({ name: 'authenticated' })
    .derive({ as: 'scoped' }, ({ headers }) => {
      headers.authorization = `Bearer ${bearerToken(headers.authorization)}`
      return {}
    })
    .use(bearer({ extract: { header: 'Bearer', query: NOWHERE, body: NOWHERE } }))
    .resolve({ as: 'scoped' }, async ({ bearer, request }) => {
      const text = bearer ?? ''
      if (!isTokenText(text)) throw new AppError('token_invalid')
      const token = await findToken(hashToken(text))
      if (token === undefined || tokenState(token, nowMs()) !== 'active') throw new AppError('token_invalid')
      noteUse(token)
      const context = contextOf(request)
      context.user = token.userName
      context.tokenId = token.id
      return { token }
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
