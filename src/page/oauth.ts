// Tested in test/http/page/signin.test.ts.
import * as oauth from 'oauth4webapi'
import type { Flow, Grant } from './storage.ts'

/** How to sign in with the identity provider, as the server says it. */
export interface SignIn {
  readonly clientId: string
  readonly parameters: readonly (readonly [name: string, value: string])[]
  /** Without endpoints if the server has never reached the provider. */
  readonly server: oauth.AuthorizationServer
}

/** A token and what it comes with, or why there is none, for people. */
export type Outcome = Readonly<{ token: string; grant: Grant }> | Readonly<{ problem: string }>

const ANSWERS_WITHIN_MS = 10_000
/** The page uses nothing of an ID token but the name, so the clock of this browser may be wrong by years. */
const CLOCK_TOLERANCE_S = 10 * 365 * 86_400

/** Where to go to sign in (OAuth 2.1 §4.1.1). The provider sends people back to `pageUrl`. */
export async function begin({ clientId, parameters, server }: SignIn, pageUrl: string) {
  const [verifier, state] = [oauth.generateRandomCodeVerifier(), oauth.generateRandomState()]
  const url = new URL(server.authorization_endpoint ?? '')
  for (const [name, value] of [
    ...parameters,
    ...Object.entries({ response_type: 'code', client_id: clientId, redirect_uri: pageUrl, state }),
    ['code_challenge', await oauth.calculatePKCECodeChallenge(verifier)] as const,
    ['code_challenge_method', 'S256'] as const,
  ])
    url.searchParams.append(name, value)
  return { url: url.href, verifier, state }
}

/** Exchanges the code of an answer for a token, unless it is no answer to this sign-in (RFC 9207 §2.4). */
export async function finish(settings: SignIn, pageUrl: string, answer: URLSearchParams, flow: Flow): Promise<Outcome> {
  const { clientId, parameters, server } = settings
  const client = { client_id: clientId, [oauth.clockTolerance]: CLOCK_TOLERANCE_S }
  const { host } = new URL(server.issuer)
  const late = new AbortController()
  setTimeout(() => late.abort(), ANSWERS_WITHIN_MS)
  try {
    const code = oauth.validateAuthResponse(server, client, answer, flow.state)
    const response = await oauth.authorizationCodeGrantRequest(
      ...([server, client, oauth.None(), code, pageUrl, flow.verifier] as const),
      {
        // A scope here could only be smaller than the granted one.
        additionalParameters: parameters.filter(([name]) => name !== 'scope').map((each) => [...each]),
        signal: late.signal,
        // The server names an address without TLS only if it is on this machine.
        [oauth.allowInsecureRequests]: true,
      },
    )
    const tokens = await oauth.processAuthorizationCodeResponse(server, client, response)
    const claims = oauth.getValidatedIdTokenClaims(tokens)
    const token = tokens.access_token
    if (token.split('.').length === 3)
      return { token, grant: { name: String(claims?.name || claims?.preferred_username || '') } }
    return { problem: `The token of ${host} is no JWT, so this server cannot read it: tell its operator.` }
  } catch (error) {
    return { problem: explain(error, host) }
  }
}

/** Why a sign-in has failed, for people. */
function explain(error: unknown, host: string): string {
  if (error instanceof oauth.AuthorizationResponseError || error instanceof oauth.ResponseBodyError) {
    if (error.error === 'access_denied') return `You have not signed in with ${host}.`
    return `${host} refuses this sign-in. It says: “${error.error_description ?? error.error}”`
  }
  const { message, code, cause } = error as Error & { readonly code?: unknown }
  // The library has texts. A browser tells no more of a request without an answer, or whose answer this page must not read.
  if (typeof code !== 'string' || (cause instanceof Response && cause.status >= 500))
    return `${host} does not answer this page. Sign in again later, or tell the operator of this server.`
  return `This answer cannot be used, so you are not signed in: ${message}.`
}
