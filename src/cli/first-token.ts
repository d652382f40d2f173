import { type Address, clientTarget, formatAddress } from '../domain/address.ts'
import type { Store } from '../domain/store.ts'
import { makeToken, TOKEN_RANDOM_BYTES } from '../domain/token.ts'
import type { Io } from './io.ts'

/** To whom the first token belongs. */
const FIRST_USER = 'me'

/** Makes the first token of a store, and returns what to tell the person who started the server; nothing if there is one. */
export async function firstToken(
  store: Pick<Store, 'createFirstToken'>,
  address: Address,
  io: Pick<Io, 'randomBytes' | 'nowMs'>,
): Promise<string | undefined> {
  const wish = { userName: FIRST_USER, scope: 'write', label: 'first token', expiresAfterMs: undefined } as const
  const { text, newToken } = makeToken(wish, io.randomBytes(TOKEN_RANDOM_BYTES), io.nowMs())
  if (!(await store.createFirstToken(newToken))) return undefined
  const { socket, url } = curlTarget(address)
  const curl = `curl ${socket}-H 'Authorization: Bearer ${text}'`
  return `
There was no token yet. This one is for user ${FIRST_USER}, and is shown this once:

  ${text}

Create a plant, list the plants, delete it:

  ${curl} -H 'Content-Type: application/json' -d '{"id":1,"name":"Monstera"}' ${url}/plants
  ${curl} ${url}/plants
  ${curl} -X DELETE ${url}/plants/1

`
}

function curlTarget(address: Address): { readonly socket: string; readonly url: string } {
  if ('socketPath' in address)
    return { socket: `--unix-socket ${shellQuoted(address.socketPath)} `, url: 'http://localhost' }
  return { socket: '', url: formatAddress(clientTarget(address)) }
}

/** A word that a POSIX shell takes as it is. */
const shellQuoted = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`
