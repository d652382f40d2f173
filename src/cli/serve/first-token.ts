import { type Address, clientTarget, formatAddress } from '../../address.ts'
import type { Settings } from '../../config.ts'
import type { Store } from '../../domain/store.ts'
import { makeToken } from '../../domain/token.ts'
import { AppError, type ErrorKind } from '../../error.ts'
import { databaseOf } from '../../store/open.ts'
import type { ThreadServices } from './http-service.ts'
import type { ServerContext } from './server-context.ts'

const FIRST_USER = 'me'

/** Failures that pass: the store cannot be reached, is locked, or has no space. */
const PASSING: readonly ErrorKind[] = ['store_failed', 'store_busy', 'store_full']
const RETRY_EVERY_MS = 500

/**
 * With `--first-token`, prints the URLs of the service, and makes the first token or says how to make another one. Without it,
 * logs how to make one if the store has none. Tries again after failures that pass, until the server drains.
 */
export async function provideFirstToken(context: ServerContext, { store, draining }: ThreadServices, address: Address) {
  while (!draining.signal.aborted) {
    try {
      return await makeOrAdvise(context, store, address)
    } catch (error) {
      if (!(error instanceof AppError) || !PASSING.includes(error.kind) || error.outcomeIsUnknown) throw error
    }
    await Bun.sleep(RETRY_EVERY_MS)
  }
}

async function makeOrAdvise({ options, log, io }: ServerContext, store: Store, address: Address): Promise<void> {
  const { location } = databaseOf(options.database)
  const hasToken = (await store.listTokens({ limit: 1 })).length > 0
  if (!options.firstToken) {
    if (!hasToken) log.warn(`there is no token yet: plantstore token create --user NAME --database ${location}`)
    return
  }
  const { flags, url } = curlTarget(clientTarget(address), options)
  // A browser reaches no unix socket.
  const reachesBrowser = !('socketPath' in address)
  const page = options.page && reachesBrowser ? [`The page: ${url}/`] : []
  const docs = options.docs && reachesBrowser ? [`The API documentation: ${url}/docs`] : []
  const request = { userName: FIRST_USER, scope: 'write', label: 'first token', expiresAfterMs: undefined } as const
  const { text, newToken } = makeToken(request, io.nowMs())
  if (hasToken || (await store.createTokens([newToken], { ifNone: true })).created === 0) {
    const command = [...io.program, 'token', 'create', '--user', FIRST_USER, '--database', location]
    const another = `For another token, run: ${command.map(shellQuoted).join(' ')}`
    return io.report(['', ...page, ...docs, another, ''])
  }
  const curl = `  curl ${flags}-H 'Authorization: Bearer ${text}'`
  const create = `${curl} -H 'Content-Type: application/json' -d '{"id":1,"name":"Monstera"}' ${url}/plants`
  const token = [`This token of user ${FIRST_USER} is shown this once:`, '', `  ${text}`]
  const calls = ['Create a plant, then list the plants:', '', create, `${curl} ${url}/plants`]
  await io.report(['', ...token, '', ...calls, '', ...page, ...docs, ''])
}

/** The flags that lead curl to this machine, and the URL of the service there. */
function curlTarget(address: Address, { tlsCert }: Settings) {
  const scheme = tlsCert === undefined ? 'http' : 'https'
  const trust = tlsCert === undefined ? '' : `--cacert ${shellQuoted(tlsCert)} `
  if (!('socketPath' in address)) return { flags: trust, url: formatAddress(address, scheme) }
  return { flags: `--unix-socket ${shellQuoted(address.socketPath)} ${trust}`, url: `${scheme}://localhost` }
}

/** A word for a POSIX shell, in quotes if it needs them. */
const shellQuoted = (text: string): string => (/^[\w./:@-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`)
