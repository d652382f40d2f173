// Tested in test/http/jwt/jwt.test.ts.
import { type JWTPayload, jwtVerify } from 'jose'
import { providerUserName, type Scope } from '../../domain/token.ts'
import { AppError } from '../../error.ts'
import type { AppOptions, IdentityProvider } from '../options.ts'
import { ALGORITHMS, fetchKeys, fetchMetadata, type KeyServices, readKeyFile, watchKeys } from './keys.ts'
import { type SignInClient, signInWith } from './sign-in.ts'

export const JWT_MAX_LENGTH = 8192
/** Clocks may differ by so much. */
export const LEEWAY_S = 60
/** A JWT is verified again after this time, because the provider may have withdrawn its key. */
export const VERIFIED_FOR_MS = 300_000

/** A JWS in compact form (RFC 7515 §7.1). */
const COMPACT = /^[\w-]+\.[\w-]+\.[\w-]+$/
/** An access token (RFC 9068 §2.1), or any JWT (RFC 7519 §5.1). */
const TYPES = /^(?:application\/)?(?:at\+)?jwt$/i

/** Which JWTs are accepted, and what a JWT without scopes may do. Without a file, the keys are fetched. */
export interface ProviderPolicy extends Pick<IdentityProvider, 'issuer'> {
  readonly audience: string
  readonly keyFile?: string | undefined
  readonly defaultScope?: Scope | undefined
  /** How people sign in at the page. Left out if they do not. */
  readonly client?: SignInClient | undefined
}

/** Accepts the JWTs of an issuer. At level `debug` the log tells why one was refused. */
export function identityProvider(
  { issuer, audience, keyFile, defaultScope, client }: ProviderPolicy,
  services: KeyServices & Pick<AppOptions, 'nowMs'>,
): IdentityProvider {
  let signIn = client && signInWith(client, { issuer })
  const load = async (signal: AbortSignal) => {
    if (keyFile !== undefined) return readKeyFile(keyFile)
    const metadata = await fetchMetadata(issuer, signal)
    signIn = client && signInWith(client, metadata)
    return fetchKeys(metadata, signal)
  }
  const keys = watchKeys(load, services)
  const options = { issuer, audience, algorithms: ALGORITHMS, requiredClaims: ['exp'], clockTolerance: LEEWAY_S }

  const check = async (text: string) => {
    if (text.length > JWT_MAX_LENGTH || !COMPACT.test(text)) throw new Error('it is no compact JWS of at most 8 KiB')
    const atMs = services.nowMs()
    const { protectedHeader, payload } = await jwtVerify(text, keys, { ...options, currentDate: new Date(atMs) })
    const { typ = 'JWT' } = protectedHeader
    const { sub, exp = 0, iat = 0 } = payload
    if ('crit' in protectedHeader) throw new Error('it has a crit')
    if (typeof typ !== 'string' || !TYPES.test(typ)) throw new Error('its typ is another one')
    if (!Number.isFinite(exp)) throw new Error('it has no exp')
    if (iat > atMs / 1000 + LEEWAY_S) throw new Error('it was issued in the future')
    // In the digest, all unpaired surrogates would be one character.
    if (typeof sub !== 'string' || sub === '' || !sub.isWellFormed()) throw new Error('it has no subject')
    const expiresAtMs = Math.min((exp + LEEWAY_S) * 1000, atMs + VERIFIED_FOR_MS)
    const userName = providerUserName(issuer, sub)
    const scope = scopeOf(payload, defaultScope)
    return { userName, subject: sub, scope, expiresAtMs, claimedExpiresAtMs: exp * 1000 }
  }
  const refuse = (error: unknown): never => {
    if (error instanceof AppError) throw error
    services.log.debug({ reason: String(error) }, 'a JWT was refused')
    throw new AppError('token_invalid')
  }
  return { issuer, signIn: () => signIn, verify: (text) => check(text).catch(refuse) }
}

/** What a JWT may do: `scope` and `scp` are each a text of words (RFC 9068 §2.2.3) or a list. Without both it is the default. */
function scopeOf({ scope, scp }: JWTPayload, defaultScope: Scope | undefined): Scope | undefined {
  if (scope === undefined && scp === undefined) return defaultScope
  const granted = [scope, scp].flatMap((claim) => (typeof claim === 'string' ? claim.split(' ') : claim))
  if (granted.includes('plants:write')) return 'write'
  return granted.includes('plants:read') ? 'read' : undefined
}
