import { bearer } from '@elysiajs/bearer'
import { Elysia } from 'elysia'
import { AppError } from '../../domain/error.ts'
import type { Scope } from '../../domain/token.ts'
import { contextOf } from '../context.ts'
import type { RequestStatistics } from '../statistics.ts'
import { bearerToken } from './credentials.ts'
import type { Limits } from './limits.ts'
import type { TokenCache } from './token-cache.ts'

/** The bearer plugin would also take a token from the query string. No query has a name with an unpaired surrogate. */
const NOWHERE = '\uD800'

/** What the check of a token needs. */
export interface AuthenticationOptions {
  readonly tokens: TokenCache
  readonly limits: Limits
  readonly statistics: Pick<RequestStatistics, 'hit'> | undefined
}

/**
 * Gives every route behind it its `caller`: the accepted token. Rejects with `token_missing`, `token_invalid` or
 * `rate_exceeded`, before anything else of the request is checked. A route with `scope: 'write'` refuses tokens of scope
 * `read`. The bearer plugin is case-sensitive and takes `Bearerfoo`, so the header is checked and rewritten before it.
 */
export const authentication = ({ tokens, limits, statistics }: AuthenticationOptions) => {
  const identify = async (request: Request, text: string) => {
    const context = contextOf(request)
    if (context.caller === undefined)
      context.caller = await tokens.read(request.headers.get('authorization') ?? '', text)
    else statistics?.hit('callers')
    await limits.admit?.(context.caller, request)
    return { caller: context.caller }
  }
  return new Elysia({ name: 'authentication' })
    .onTransform({ as: 'scoped' }, ({ headers, request }) => {
      const caller = tokens.get(headers.authorization)
      if (caller === undefined) headers.authorization = `Bearer ${bearerToken(headers.authorization)}`
      else contextOf(request).caller = caller
    })
    .use(bearer({ extract: { header: 'Bearer', query: NOWHERE, body: NOWHERE } }))
    .derive({ as: 'scoped' }, ({ bearer, request }) => {
      const { caller } = contextOf(request)
      if (caller === undefined || limits.admit !== undefined) return identify(request, bearer ?? '')
      statistics?.hit('callers')
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
