import type { Store } from '../domain/store.ts'
import { type Address, clientTarget, formatAddress } from '../http/address.ts'
import { makeToken } from './token-create.ts'

/** To whom the first token belongs. */
const FIRST_USER = 'me'

/** Makes the first token of a store, and returns what to tell the person who started the server; nothing if there is one. */
export async function firstToken(
  store: Pick<Store, 'createFirstToken'>,
  address: Address,
): Promise<string | undefined> {
  const { text, newToken } = makeToken({ user: FIRST_USER, scope: 'write', label: 'first token' })
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
