// Tested in test/http/jwt-keys.test.ts.
import { createLocalJWKSet, errors, flattenedVerify, type JSONWebKeySet, type JWK, type JWTVerifyGetKey } from 'jose'
import { isSafeAddress } from '../../address.ts'
import { AppError } from '../../error.ts'
import { type AppOptions, HTTP_DEADLINES } from '../options.ts'

/** Signatures by private keys alone: no verifying key can sign (RFC 8725 §3.1). The last two mean the same (RFC 9864 §2.2). */
export const ALGORITHMS = ['RS256', 'PS256', 'ES256', 'EdDSA', 'Ed25519']

/** How often the keys are read, and at most after a failure or for a JWT with an unknown key. */
export const REFRESH_EVERY_MS = 600_000
export const REFRESH_MIN_MS = 10_000
const LOOK_EVERY_MS = 1000
/** How long known keys are used while none can be read. */
export const KEYS_MAX_AGE_MS = 24 * 3_600_000
/** How many keys may match a JWT, because all are tried for a forged one. */
export const CANDIDATES_MAX = 8
/** How long each document may be. */
export const DOCUMENT_MAX_BYTES = 256 * 1024

/** What reading the keys needs of the service. */
export type KeyServices = Pick<AppOptions, 'log' | 'monotonicMs' | 'statistics' | 'deadlines'>

/**
 * The keys that `load` reads at once, and again before they are old. Rejects with `store_busy` while no keys are known, and
 * with an error of `jose` if a JWT has no key.
 */
export function watchKeys(
  load: (signal: AbortSignal) => Promise<unknown>,
  { log, monotonicMs, statistics, deadlines = HTTP_DEADLINES }: KeyServices,
): JWTVerifyGetKey {
  let known: readonly Key[] | undefined
  let [readAtMs, triedAtMs] = [Number.NEGATIVE_INFINITY, Number.NEGATIVE_INFINITY]
  let loading: Promise<unknown> | undefined
  let reading: Promise<void> | undefined
  let [isUsable, isWhole, hadTooMany] = [true, true, false]

  const read = async (): Promise<void> => {
    triedAtMs = monotonicMs()
    const signal = AbortSignal.timeout(deadlines.keysMs)
    const late = new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)))
    // A file may never answer. It is not opened again meanwhile.
    loading ??= load(signal).finally(() => {
      loading = undefined
    })
    try {
      const set = (await Promise.race([loading, late])) as JSONWebKeySet
      if (!Array.isArray(set.keys)) throw new Error('the key set is malformed')
      const imported = await Promise.allSettled(set.keys.flatMap((jwk) => ALGORITHMS.map((alg) => importKey(jwk, alg))))
      known = imported.flatMap((each) => (each.status === 'fulfilled' ? each.value : []))
      readAtMs = triedAtMs
      const [wasUsable, wasWhole] = [isUsable, isWhole]
      isUsable = known.length > 0
      isWhole = imported.every((each) => each.status === 'fulfilled' || each.reason instanceof errors.JWKSNoMatchingKey)
      if (wasUsable && !isUsable) log.warn('the identity provider has no key that can be used, so JWTs are refused')
      if (wasWhole && !isWhole) log.warn('the identity provider has a broken key, which is skipped')
    } catch (error) {
      if (statistics?.keyFailures !== undefined) statistics.keyFailures++
      log.warn({ reason: String(error).slice(0, 500) }, 'the keys of the identity provider could not be read')
    }
    reading = undefined
  }
  /** Reads the keys if that was not tried for so long. All who wait share one reading. */
  const refresh = async (pauseMs = REFRESH_MIN_MS): Promise<void> => {
    if (monotonicMs() - triedAtMs >= pauseMs) reading ??= read()
    await reading
  }
  const look = () => void refresh(readAtMs < triedAtMs ? REFRESH_MIN_MS : REFRESH_EVERY_MS)
  const find = async (...[{ alg, kid }, jws]: Parameters<JWTVerifyGetKey>) => {
    if (!known || monotonicMs() - readAtMs >= KEYS_MAX_AGE_MS) throw new AppError('store_busy', { message: NO_KEYS })
    const candidates = known.filter((key) => key.alg === alg && (kid === undefined || (key.kid ?? kid) === kid))
    const isTooMany = candidates.length > CANDIDATES_MAX
    if (isTooMany && !hadTooMany) log.warn('a JWT was refused, because too many keys match it')
    hadTooMany ||= isTooMany
    for (const { key } of isTooMany ? [] : candidates)
      if (candidates.length === 1 || (await flattenedVerify(jws, key).catch(() => false))) return key
    throw new errors.JWKSNoMatchingKey()
  }

  if (statistics !== undefined) statistics.keyFailures ??= 0
  look()
  setInterval(look, LOOK_EVERY_MS).unref()
  return async (...jwt) => {
    const tried = known
    return find(...jwt).catch((error) => refresh().then(() => (known === tried ? Promise.reject(error) : find(...jwt))))
  }
}

type Key = Awaited<ReturnType<typeof importKey>>

/** A key of a JWKS for an algorithm. It is imported by itself, so that a broken one breaks no other. */
async function importKey(jwk: JWK, alg: string) {
  const key = await createLocalJWKSet({ keys: [jwk] })({ alg })
  return { alg, kid: jwk.kid, key }
}

const NO_KEYS =
  'The keys of the identity provider could not be read, nothing was and nothing will be stored: try again.'

/** Reads a JWKS from a file. */
export const readKeyFile = (path: string): Promise<unknown> => readJson(path, Bun.file(path).stream())

/** What a provider says of itself (RFC 8414 §2). */
export type Metadata = Readonly<Record<string, unknown>>

/** Fetches the metadata of an issuer: those of OpenID Connect (Discovery 1.0 §4), or else those of OAuth (RFC 8414 §3). */
export async function fetchMetadata(issuer: string, signal: AbortSignal): Promise<Metadata> {
  const { origin, pathname } = new URL(issuer)
  const path = pathname.replace(/\/$/, '')
  const metadata = await fetchJson(`${origin}${path}/.well-known/openid-configuration`, signal).catch((error) =>
    fetchJson(`${origin}/.well-known/oauth-authorization-server${path}`, signal).catch(() => Promise.reject(error)),
  )
  if (metadata.issuer !== issuer) throw new Error(`the metadata are of another issuer: ${metadata.issuer}`)
  return metadata
}

/** Fetches the JWKS whose address the metadata have. */
export async function fetchKeys({ jwks_uri }: Metadata, signal: AbortSignal): Promise<unknown> {
  const address = String(jwks_uri)
  if (!isSafeAddress(address)) throw new Error(`the metadata have no https address of keys: ${address}`)
  return fetchJson(address, signal)
}

async function fetchJson(address: string, signal: AbortSignal) {
  const headers = { accept: 'application/json', 'accept-encoding': 'identity' }
  // No variable of the environment may let others give their keys. An issuer without TLS is on this machine and needs no proxy.
  const tls = { rejectUnauthorized: true }
  // ALL_PROXY is no setting of ours, but the runtime would take it.
  const proxy = address.startsWith('https:') && (Bun.env.HTTPS_PROXY || Bun.env.https_proxy) ? undefined : false
  // A compressed document could be a thousand times as long as what arrives.
  const response = await fetch(address, { signal, headers, redirect: 'error', decompress: false, tls, proxy })
  if (!response.ok) throw new Error(`${address} answers ${response.status}`)
  return readJson(address, response.body ?? new Blob().stream())
}

async function readJson(source: string, stream: ReadableStream<Uint8Array<ArrayBuffer>>) {
  let text = ''
  for await (const part of stream.pipeThrough(new TextDecoderStream())) {
    text += part
    if (text.length > DOCUMENT_MAX_BYTES) throw new Error(`${source} has more than ${DOCUMENT_MAX_BYTES} bytes`)
  }
  return Object(JSON.parse(text)) as Record<string, unknown>
}
