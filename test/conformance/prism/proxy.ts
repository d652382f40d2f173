import { appendFileSync, readFileSync } from 'node:fs'
import { createLogger } from '@stoplight/prism-core'
import { getHttpOperationsFromSpec } from '@stoplight/prism-http'
import { createServer } from '@stoplight/prism-http-server'

/** The file of the document. */
const DOCUMENT = process.env.TEST_PROXY_DOCUMENT ?? ''
/** The file that gets a line for each answer. */
const ANSWERS = process.env.TEST_PROXY_ANSWERS ?? ''

/** Prism takes an int64 for the integers that a double holds exactly. The service has all of int64. */
const IS_OF_LARGE_ID = /\bid must be (?:>= -|<= )9007199254740991$/

/** The headers that Prism adds or changes. */
const ADDED_HEADERS = ['sl-violations', 'connection', 'keep-alive']

const operations = await getHttpOperationsFromSpec(JSON.parse(readFileSync(DOCUMENT, 'utf8')))

/** A violation of the document by the request or the answer. */
interface Violation {
  readonly location: readonly string[]
  readonly message: string
}

/**
 * Starts Prism in front of a server, as `prism proxy` does. Requests that Prism would change go directly to the server. `fetch`
 * rejects if an answer violates the document.
 */
export async function startProxy(upstream: string) {
  const prism = createServer(operations, {
    cors: false,
    config: {
      isProxy: true,
      upstream: new URL(upstream),
      upstreamProxy: undefined,
      checkSecurity: true,
      validateRequest: true,
      validateResponse: true,
      errors: false,
      mock: { dynamic: false },
    },
    components: { logger: createLogger('prism', { level: 'silent' }) },
  })
  const url = await prism.listen(0, '127.0.0.1')

  return {
    async fetch(path: string, init: RequestInit): Promise<Response> {
      if (!isUnchangedByPrism(path, init)) return fetch(upstream + path, init)
      const answer = await fetch(url + path, init)
      const found: Violation[] = JSON.parse(answer.headers.get('sl-violations') ?? '[]')
      const violations = found.filter(
        ({ location, message }) => location[0] === 'response' && !IS_OF_LARGE_ID.test(message),
      )
      const route = path.replace(/[?].*/, '').replace(/^\/plants\/.+/, '/plants/{id}')
      appendFileSync(ANSWERS, `${init.method} ${route} ${answer.status}\n`)
      if (violations.length > 0) throw new Error(`Prism: ${init.method} ${path}: ${JSON.stringify(violations)}`)
      // Prism would round ids, so its answer is only validated.
      if (path.includes('include=id')) return fetch(upstream + path, init)
      const headers = new Headers(answer.headers)
      for (const name of ADDED_HEADERS) headers.delete(name)
      return new Response(answer.body, { status: answer.status, headers })
    },
    stop: () => prism.close(),
  }
}

const PLAIN_PATH = /^(?:\/[\w-][\w.-]*)+(?:\?|$)/
const PLAIN_TYPES = ['application/json', 'text/plain']

/**
 * Prism parses and rewrites JSON, sends its own `Host`, normalizes paths, unpacks compressed answers, and fails if it cannot
 * parse a body.
 */
function isUnchangedByPrism(path: string, { method, headers, body }: RequestInit): boolean {
  const sent = new Headers(headers)
  const type = sent.get('content-type')
  if (method === 'HEAD' || sent.has('host') || !PLAIN_PATH.test(path) || path.startsWith('/assets/')) return false
  if (type !== null && !PLAIN_TYPES.includes(type)) return false
  return body === undefined || (typeof body === 'string' && (type !== 'application/json' || isPlainObject(body)))
}

function isPlainObject(text: string): boolean {
  try {
    return text.startsWith('{') && JSON.stringify(JSON.parse(text)) === text
  } catch {
    return false
  }
}
