import { type Address, clientTarget, formatAddress } from '../../domain/address.ts'
import { AppError, type ErrorKind } from '../../domain/error.ts'
import type { Store } from '../../domain/store.ts'
import { makeToken } from '../../domain/token.ts'
import type { Lifecycle } from '../../http/options.ts'
import type { Logger } from '../../log.ts'
import { engineOf } from '../../store/open.ts'
import { type Io, linesOf } from '../io.ts'
import type { ServeOptions } from './options.ts'

/** The user of the first token. */
const FIRST_USER = 'me'

/** Failures that pass: the store cannot be reached, is locked, or has no space. */
const PASSING: readonly ErrorKind[] = ['store_failed', 'store_busy', 'store_full']
const RETRY_EVERY_MS = 500

interface FirstTokenParts {
  readonly store: Pick<Store, 'listTokens' | 'createFirstToken'>
  readonly address: Address
  readonly log: Logger
  readonly options: Pick<ServeOptions, 'database' | 'firstToken' | 'tlsCert' | 'page' | 'docs'>
  readonly io: Pick<Io, 'tell' | 'randomBytes' | 'nowMs'>
}

/**
 * If the store has no token, makes the first one and prints it, or logs how to make one, as the options say. Tries again after
 * failures that pass, until the server drains.
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
  if ((await store.listTokens({ limit: 1 })).length > 0) return
  if (!options.firstToken) {
    const { location } = engineOf(options.database)
    return log.warn(`there is no token yet: plantstore token create --user NAME --database ${location}`)
  }
  const request = { userName: FIRST_USER, scope: 'write', label: 'first token', expiresAfterMs: undefined } as const
  const { text, newToken } = makeToken(request, io)
  if (!(await store.createFirstToken(newToken))) return
  const { flags, url } = curlTarget(clientTarget(address), options)
  // A browser reaches no unix socket.
  const reachesBrowser = !('socketPath' in address)
  const page = options.page && reachesBrowser ? `Or paste the token into the page in a browser: ${url}/\n\n` : ''
  const docs = options.docs && reachesBrowser ? `Read and try the API: ${url}/docs\n\n` : ''
  const curl = `curl ${flags}-H 'Authorization: Bearer ${text}'`
  const message = `
There was no token yet. This one is for user ${FIRST_USER}, and is shown this once:

  ${text}

Create a plant, list the plants, delete it:

  ${curl} -H 'Content-Type: application/json' -d '{"id":1,"name":"Monstera"}' ${url}/plants
  ${curl} ${url}/plants
  ${curl} -X DELETE ${url}/plants/1

${page}${docs}`
  await io.tell(linesOf(message), 'info')
}

/** The flags that lead curl to this machine, and the URL of the service there. */
function curlTarget(address: Address, { tlsCert }: Pick<ServeOptions, 'tlsCert'>) {
  const scheme = tlsCert === undefined ? 'http' : 'https'
  const trust = tlsCert === undefined ? '' : `--cacert ${shellQuoted(tlsCert)} `
  if (!('socketPath' in address)) return { flags: trust, url: formatAddress(address, scheme) }
  return { flags: `--unix-socket ${shellQuoted(address.socketPath)} ${trust}`, url: `${scheme}://localhost` }
}

/** Quotes a word for a POSIX shell. */
const shellQuoted = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`
