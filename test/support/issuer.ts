import { exportJWK, generateKeyPair, type JWK, type JWTPayload, SignJWT } from 'jose'
import type { TlsFiles } from './certificates.ts'

export const AUDIENCE = 'https://plants.example.org'

/** A key of an issuer: its public half as the issuer publishes it, and the private one. */
export type IssuerKey = Awaited<ReturnType<typeof makeKey>>

/** Makes a key. RSA takes a second, so most tests use elliptic curves. */
export async function makeKey(alg: string, kid = 'key 1', others: Partial<JWK> = {}) {
  const { publicKey, privateKey } = await generateKeyPair(alg, { extractable: true })
  return { alg, kid, privateKey, publicKey, jwk: { ...(await exportJWK(publicKey)), kid, alg, use: 'sig', ...others } }
}

interface IssuerOptions {
  readonly keys?: readonly IssuerKey[]
  readonly path?: string
  readonly tls?: TlsFiles
}

/**
 * An issuer whose tokens and documents the test decides. Its documents come over HTTP, or over TLS, and `answers` has those that differ from the
 * usual ones by their paths.
 */
export async function startIssuer({ keys = [], path = '', tls }: IssuerOptions = {}) {
  const first = keys[0] ?? (await makeKey('ES256'))
  const state = {
    keys: keys.length > 0 ? keys.map(({ jwk }) => jwk) : [first.jwk],
    answers: new Map<string, () => Response | Promise<Response>>(),
    requests: [] as string[],
  }
  const server: Bun.Server<undefined> = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    ...(tls && { tls: { cert: Bun.file(tls.certPath), key: Bun.file(tls.keyPath) } }),
    fetch({ url }): Response | Promise<Response> {
      const { pathname } = new URL(url)
      state.requests.push(pathname)
      const answer = state.answers.get(pathname)
      if (answer !== undefined) return answer()
      if (pathname === `${path}/.well-known/openid-configuration`) return Response.json(metadata)
      return pathname === '/jwks' ? Response.json({ keys: state.keys }) : new Response(null, { status: 404 })
    },
  })
  const origin: string = server.url.origin
  const issuer = origin + path
  const metadata = { issuer, jwks_uri: `${origin}/jwks` }

  return {
    issuer,
    origin,
    metadata,
    state,
    key: first,
    /** The claims of a token that is accepted and may write. */
    claims: (others: JWTPayload = {}): JWTPayload => claimsOf(issuer, others),
    /** A token with these claims beside the usual ones. A claim that is `undefined` is left out. */
    token: (others: JWTPayload = {}, header: object = {}, key: IssuerKey = first) =>
      sign(key, claimsOf(issuer, others), header),
    [Symbol.asyncDispose]: () => server.stop(true),
  }
}

const claimsOf = (issuer: string, others: JWTPayload): JWTPayload => ({
  iss: issuer,
  aud: AUDIENCE,
  sub: 'ada',
  scope: 'plants:write',
  exp: Math.floor(Date.now() / 1000) + 3600,
  ...others,
})

/** Signs claims, by default as RFC 9068 says. */
export const sign = ({ alg, kid, privateKey }: IssuerKey, claims: JWTPayload, header: object = {}): Promise<string> =>
  new SignJWT(claims).setProtectedHeader({ alg, kid, typ: 'at+jwt', ...header }).sign(privateKey)
