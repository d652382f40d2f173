// Tested in test/http/jwt/jwt.test.ts.
import { Elysia } from 'elysia'
import { respond } from '../answers.ts'
import type { AppOptions } from '../options.ts'
import { contextOf, type Handler, type RequestContext } from '../request-context.ts'

const PATH = '/.well-known/oauth-protected-resource'

/** Tells clients which identity provider gives tokens for this service (RFC 9728 §2), if there is one. */
export function resourceMetadata({ provider, publicUrl }: Pick<AppOptions, 'provider' | 'publicUrl'>) {
  const app = new Elysia({ name: 'resourceMetadata' })
  if (provider === undefined) return app
  const others = {
    authorization_servers: [provider.issuer],
    scopes_supported: ['plants:read', 'plants:write'],
    bearer_methods_supported: ['header'],
  }
  const answer = ({ request }: { readonly request: Request }) =>
    respond(JSON.stringify({ resource: publicUrl ?? originOf(contextOf(request)), ...others }))
  return app.get(PATH, answer, { parse: 'none', detail: { operationId: 'resourceMetadata', hide: true } })
}

/** Adds to each 401 where these metadata are (RFC 9728 §5.1), and names the scope that a JWT lacks. */
export const challengeJwts =
  (answer: Handler, publicUrl: string | undefined): Handler =>
  async (request, context) => {
    const response = await answer(request, context)
    const given = response.headers.get('www-authenticate')
    if (given === null) return response
    const lacksScope = given.includes('insufficient_scope')
    const isJwt = context.caller?.subject !== undefined
    const own = lacksScope ? given : `${given}, resource_metadata="${publicUrl ?? originOf(context)}${PATH}"`
    response.headers.set('www-authenticate', lacksScope && isJwt ? own.replace('="write"', '="plants:write"') : own)
    return response
  }

/** How the client has reached the service. A host may have quotes. */
const originOf = ({ url }: RequestContext): string =>
  URL.parse(url)?.origin.replaceAll('"', '%22') ?? 'http://localhost'
