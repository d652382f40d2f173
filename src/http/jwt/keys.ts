import { createLocalJWKSet, errors, type JWTVerifyGetKey } from 'jose'
import { isSafeAddress } from '../../domain/address.ts'
import { AppError } from '../../domain/error.ts'
import type { AppOptions } from '../options.ts'

/** How often the keys are read again, and how often at most for JWTs whose key is not known. */
const RENEW_EVERY_MS = 600_000
export const RENEW_MIN_MS = 10_000
/** How long known keys are used while none can be read. */
export const KEYS_MAX_AGE_MS = 24 * 3_600_000
/** How long a provider may take to send its keys, and how long each of its documents may be. */
const FETCH_TIMEOUT_MS = 5000
export const DOCUMENT_MAX_BYTES = 256 * 1024

/**
 * The keys that `load` reads at once, every few minutes, and for a JWT whose key is not known. Rejects with `store_busy` while no
 * keys are known, and with an error of `jose` if a JWT has no key.
 */
export function watchKeys(
  load: () => Promise<unknown>,
  { log, monotonicMs, statistics }: Pick<AppOptions, 'log' | 'monotonicMs' | 'statistics'>,
): JWTVerifyGetKey {
  let known: JWTVerifyGetKey | undefined
  let [readAtMs, triedAtMs] = [Number.NEGATIVE_INFINITY, Number.NEGATIVE_INFINITY]
  let reading: Promise<void> | undefined

  const read = async (): Promise<void> => {
    triedAtMs = monotonicMs()
    try {
      known = createLocalJWKSet((await load()) as Parameters<typeof createLocalJWKSet>[0])
      readAtMs = monotonicMs()
    } catch (error) {
      if (statistics?.keyFailures !== undefined) statistics.keyFailures++
      log.warn({ reason: String(error).slice(0, 500) }, 'the keys of the identity provider could not be read')
    }
    reading = undefined
  }
  /** All who wait share one reading. */
  const renew = async (): Promise<void> => {
    if (reading === undefined && monotonicMs() - triedAtMs < RENEW_MIN_MS) return
    reading ??= read()
    await reading
  }
  const find: JWTVerifyGetKey = (header, jws) => {
    if (known !== undefined && monotonicMs() - readAtMs < KEYS_MAX_AGE_MS) return known(header, jws)
    throw new AppError('store_busy', { message: NO_KEYS })
  }

  void renew()
  setInterval(renew, RENEW_EVERY_MS).unref()
  return async (header, jws) => {
    try {
      return await find(header, jws)
    } catch (error) {
      if (!(error instanceof AppError || error instanceof errors.JWKSNoMatchingKey)) throw error
      await renew()
      return find(header, jws)
    }
  }
}

const NO_KEYS =
  'The keys of the identity provider could not be read, nothing was and nothing will be stored: try again.'

/** Reads a JWKS from a file. */
export const readKeyFile = (path: string): Promise<unknown> => Bun.file(path).slice(0, DOCUMENT_MAX_BYTES).json()

/**
 * Fetches the JWKS of an issuer, whose address its metadata have: those of OpenID Connect (Discovery 1.0 §4), or else those of OAuth
 * (RFC 8414 §3).
 */
export async function fetchKeys(issuer: string): Promise<unknown> {
  const signal = AbortSignal.timeout(FETCH_TIMEOUT_MS)
  const { origin, pathname } = new URL(issuer)
  const path = pathname.replace(/\/$/, '')
  const metadata = await fetchJson(`${origin}${path}/.well-known/openid-configuration`, signal).catch((error) =>
    fetchJson(`${origin}/.well-known/oauth-authorization-server${path}`, signal).catch(() => Promise.reject(error)),
  )
  if (metadata.issuer !== issuer) throw new Error(`the metadata are of another issuer: ${metadata.issuer}`)
  const address = String(metadata.jwks_uri)
  if (!isSafeAddress(address)) throw new Error(`the metadata have no https address of keys: ${address}`)
  return fetchJson(address, signal)
}

async function fetchJson(address: string, signal: AbortSignal): Promise<Record<string, unknown>> {
  const headers = { accept: 'application/json', 'accept-encoding': 'identity' }
  // A compressed document could be a thousand times as long as what arrives.
  const response = await fetch(address, { signal, headers, redirect: 'error', decompress: false })
  if (!response.ok) throw new Error(`${address} answers ${response.status}`)
  let text = ''
  for await (const part of (response.body ?? new Blob().stream()).pipeThrough(new TextDecoderStream())) {
    text += part
    if (text.length > DOCUMENT_MAX_BYTES) throw new Error(`${address} has more than ${DOCUMENT_MAX_BYTES} bytes`)
  }
  return Object(JSON.parse(text))
}
