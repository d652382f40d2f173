import { type Address, clientTarget, formatAddress } from '../../domain/address.ts'
import type { Store } from '../../domain/store.ts'
import { makeToken, TOKEN_RANDOM_BYTES } from '../../domain/token.ts'
import type { Io } from '../io.ts'

/** To whom the first token belongs. */
const FIRST_USER = 'me'

/** Whom clients trust, where the server speaks TLS, and the name of a host for which it holds, if it has one. */
export interface ServerCertificate {
  readonly path: string
  readonly host: string | undefined
}

/** Makes the first token of a store, and returns what to tell the person who started the server; nothing if there is one. */
export async function firstToken(
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

/** What leads curl to an address of this machine, also where its certificate is for another name. */
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

/** A word that a POSIX shell takes as it is. */
const shellQuoted = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`
