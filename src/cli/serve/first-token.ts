import { type Address, clientTarget, formatAddress } from '../../domain/address.ts'
import { AppError, type ErrorKind } from '../../domain/error.ts'
import type { Store } from '../../domain/store.ts'
import { makeToken, TOKEN_RANDOM_BYTES } from '../../domain/token.ts'
import type { Lifecycle } from '../../http/probes.ts'
import type { Logger } from '../../log.ts'
import { engineOf } from '../../store/open.ts'
import type { Io } from '../io.ts'
import type { ServeOptions } from './options.ts'

/** The user of the first token. */
const FIRST_USER = 'me'

/** Failures that pass: the store cannot be reached, is locked, or has no space. */
const PASSING: readonly ErrorKind[] = ['store_failed', 'store_busy', 'store_full']
const RETRY_EVERY_MS = 500

/** A certificate that clients must trust, and a host name that it is for, if it has one. */
export interface ServerCertificate {
  readonly path: string
  readonly host: string | undefined
}

interface FirstTokenParts {
  readonly store: Pick<Store, 'hasTokens' | 'createFirstToken'>
  readonly address: Address
  readonly log: Logger
  readonly options: Pick<ServeOptions, 'database' | 'firstToken' | 'tlsCert' | 'tls'>
  readonly io: Pick<Io, 'tell' | 'randomBytes' | 'nowMs'>
}

/**
 * If the store has no token, makes the first one or logs how to make one, as the options say. Tries again after failures
 * that pass, until the server drains.
 */
export async function provideFirstToken(parts: FirstTokenParts, lifecycle: Lifecycle): Promise<void> {
  while (!lifecycle.isDraining) {
    try {
      return await makeOrAdvise(parts)
    } catch (error) {
      if (!(error instanceof AppError) || !PASSING.includes(error.kind) || error.outcomeIsUnknown) throw error
    }
    await Bun.sleep(RETRY_EVERY_MS)
  }
}

async function makeOrAdvise({ store, address, log, options, io }: FirstTokenParts): Promise<void> {
  if (await store.hasTokens()) return
  const { tlsCert: path, tls } = options
  const certificate = path === undefined ? undefined : { path, host: tls?.host }
  if (options.firstToken) return io.tell((await makeFirstToken(store, address, certificate, io)) ?? '')
  log.warn(
    `there is no token yet: plantstore token create --user NAME --database ${engineOf(options.database).location}`,
  )
}

/** Makes the first token and returns the text that shows it to the operator. Returns nothing if the store has a token. */
export async function makeFirstToken(
  store: Pick<Store, 'createFirstToken'>,
  address: Address,
  certificate: ServerCertificate | undefined,
  io: Pick<Io, 'randomBytes' | 'nowMs'>,
): Promise<string | undefined> {
  const wish = { userName: FIRST_USER, scope: 'write', label: 'first token', expiresAfterMs: undefined } as const
  const { text, newToken } = makeToken(wish, io.randomBytes(TOKEN_RANDOM_BYTES), io.nowMs())
  if (!(await store.createFirstToken(newToken))) return undefined
  const { options, url } = curlTarget(clientTarget(address), certificate)
  const curl = `curl ${options}-H 'Authorization: Bearer ${text}'`
  return `
There was no token yet. This one is for user ${FIRST_USER}, and is shown this once:

  ${text}

Create a plant, list the plants, delete it:

  ${curl} -H 'Content-Type: application/json' -d '{"id":1,"name":"Monstera"}' ${url}/plants
  ${curl} ${url}/plants
  ${curl} -X DELETE ${url}/plants/1

`
}

/** The options that lead curl to this machine, also if the certificate is for another name. */
function curlTarget(address: Address, certificate: ServerCertificate | undefined) {
  const scheme = certificate === undefined ? 'http' : 'https'
  const trust = certificate === undefined ? '' : `--cacert ${shellQuoted(certificate.path)} `
  if ('socketPath' in address) {
    const options = `--unix-socket ${shellQuoted(address.socketPath)} ${trust}`
    return { options, url: `${scheme}://${certificate?.host ?? 'localhost'}` }
  }
  const url = formatAddress(address, scheme)
  if (certificate?.host === undefined) return { options: trust, url }
  const options = `${trust}--connect-to ${shellQuoted(`::${url.slice('https://'.length)}`)} `
  return { options, url: `https://${certificate.host}:${address.port}` }
}

/** Quotes a word for a POSIX shell. */
const shellQuoted = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`
