import { bearer } from '@elysiajs/bearer'
import { Elysia } from 'elysia'
import { AppError } from '../domain/error.ts'
import type { Token } from '../domain/token.ts'
import type { Callers } from './callers.ts'
import { contextOf } from './context.ts'

/** The scheme in any letter case, then spaces, then a `b64token` (RFC 6750 §2.1). Two lines arrive joined by a comma. */
const BEARER = /^bearer +([A-Za-z0-9\-._~+/]+=*)$/i

/** The bearer plugin would also take a token from the query string: no query can have a name with a lone surrogate. */
const NOWHERE = '\uD800'

/**
 * Gives every route behind it its `caller`. Rejects with `token_missing` or `token_invalid`. The plugin is
 * case-sensitive and takes `Bearerfoo`; so the header is checked and written in its one form before the plugin reads it.
 */
export const authenticated = ({ identify }: Callers) =>
  new Elysia({ name: 'authenticated' })
    .derive({ as: 'scoped' }, ({ headers }) => {
      headers.authorization = `Bearer ${bearerToken(headers.authorization)}`
      return {}
    })
    .use(bearer({ extract: { header: 'Bearer', query: NOWHERE, body: NOWHERE } }))
    .resolve({ as: 'scoped' }, async ({ bearer, request }) => {
      const caller = await identify(request.headers.get('authorization') ?? '', bearer ?? '')
      contextOf(request).caller = caller
      return { caller }
    })

/** The same where the caller was recalled: nothing is left to be done. */
export const recalled = () =>
  new Elysia({ name: 'recalled' }).resolve({ as: 'scoped' }, ({ request }) => {
    const { caller } = contextOf(request)
    if (caller === undefined) throw new TypeError('nobody was recalled')
    return { caller }
  }) as unknown as Authentication

/** Gives every route behind it its `caller`. */
export type Authentication = ReturnType<typeof authenticated>

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
