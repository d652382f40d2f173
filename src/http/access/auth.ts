import { bearer } from '@elysiajs/bearer'
import { Elysia } from 'elysia'
import { AppError } from '../../domain/error.ts'
import type { Token } from '../../domain/token.ts'
import { contextOf } from '../context.ts'
import type { Admit } from './admission.ts'
import type { Callers } from './callers.ts'

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

/** The bearer plugin would also take a token from the query string: no query can have a name with a lone surrogate. */
const NOWHERE = '\uD800'

/**
 * Gives every route behind it its `caller`, once admitted. Rejects with `token_missing`, `token_invalid`, or as `admit`
 * does. The plugin is case-sensitive and takes `Bearerfoo`; so the header is checked and written in its one form before
 * the plugin reads it.
 */
export const authenticated = ({ identify }: Callers, admit: Admit | undefined) =>
  new Elysia({ name: 'authenticated' })
    .derive({ as: 'scoped' }, ({ headers }) => {
      headers.authorization = `Bearer ${bearerToken(headers.authorization)}`
      return {}
    })
    .use(bearer({ extract: { header: 'Bearer', query: NOWHERE, body: NOWHERE } }))
    .resolve({ as: 'scoped' }, async ({ bearer, request }) => {
      const caller = await identify(request.headers.get('authorization') ?? '', bearer ?? '')
      const context = contextOf(request)
      context.caller = caller
      if (admit !== undefined) await admit(caller, context)
      return { caller }
    })

/** The same where the caller was recalled: nothing is left to be done but to admit them. */
export function recalled(admit: Admit | undefined): Authentication {
  const app = new Elysia({ name: 'recalled' })
  const callerOf = (request: Request) => {
    const { caller } = contextOf(request)
    if (caller === undefined) throw new TypeError('nobody was recalled')
    return caller
  }
  const resolved =
    admit === undefined
      ? app.resolve({ as: 'scoped' }, ({ request }) => ({ caller: callerOf(request) }))
      : app.resolve({ as: 'scoped' }, async ({ request }) => {
          const caller = callerOf(request)
          await admit(caller, contextOf(request))
          return { caller }
        })
  return resolved as unknown as Authentication
}

/** Gives every route behind it its `caller`. */
export type Authentication = ReturnType<typeof authenticated>

/** Rejects with `scope_insufficient` where the token may only list. */
export function requireWrite(token: Token): void {
  if (token.scope !== 'write') throw new AppError('scope_insufficient')
}

function bearerToken(authorization: string | undefined): string {
  if (authorization === undefined) throw new AppError('token_missing')
  const token = BEARER.exec(authorization)?.[1]
  if (token === undefined) throw new AppError(isOtherScheme(authorization) ? 'token_missing' : 'token_invalid')
  return token
}

/** Whether the line holds no bearer token, but well-formed credentials of another scheme (RFC 6750 §3.1). */
function isOtherScheme(authorization: string): boolean {
  const scheme = CREDENTIALS.exec(authorization)?.[1]
  return scheme !== undefined && scheme.toLowerCase() !== 'bearer'
}
