import { cors } from '@elysiajs/cors'
import { Elysia } from 'elysia'
import type { Connection } from './server.ts'

/** What pages may send, and what of an answer they may read besides its body (Fetch standard §3.3). */
const METHODS = ['GET', 'HEAD', 'POST', 'DELETE'] as const
const SENT_HEADERS = ['Authorization', 'Content-Type', 'If-None-Match', 'X-Request-Id']
const EXPOSED_HEADERS = ['Link', 'ETag', 'Retry-After', 'X-Request-Id']
/** For how long a browser need not ask again what pages may send. */
const PREFLIGHT_MAX_AGE_S = 600

type Answers = (request: Request, connection?: Connection) => Response | Promise<Response>

/**
 * Lets pages of these origins read all answers of the app; those of others read none. The plugin says with what headers.
 * It is asked about each origin once and apart from the app: many answers are made outside of Elysia, and inside it would
 * answer OPTIONS without `Allow`, also where there is nothing, and give headers to origins that are not listed.
 */
export function shareWith(origins: readonly string[], app: Answers): Answers {
  const listed = new Set(origins)
  const plugin = new Elysia()
    .use(
      cors({
        origin: [...origins],
        methods: [...METHODS],
        allowedHeaders: SENT_HEADERS,
        exposeHeaders: EXPOSED_HEADERS,
        credentials: false,
        maxAge: PREFLIGHT_MAX_AGE_S,
        preflight: true,
      }),
    )
    .get('/', () => new Response(null))
  const known = new Map<string, Promise<Shared>>()

  const ask = async (origin: string, isPreflight: boolean): Promise<Shared> => {
    const asked = { origin, 'access-control-request-method': 'GET' }
    const { headers } = await plugin.fetch(
      new Request('http://localhost/', { method: isPreflight ? 'OPTIONS' : 'GET', headers: asked }),
    )
    return [...headers].filter(([name]) => name.startsWith('access-control-'))
  }

  /** The headers for an origin; none where it is not listed. */
  const sharedWith = (request: Request): Shared | Promise<Shared> => {
    const origin = request.headers.get('origin')
    if (origin === null || !listed.has(origin)) return []
    const isPreflight = request.method === 'OPTIONS'
    const key = `${isPreflight} ${origin}`
    const shared = known.get(key) ?? ask(origin, isPreflight)
    known.set(key, shared)
    return shared
  }

  return async (request, connection) => {
    const [response, shared] = await Promise.all([app(request, connection), sharedWith(request)])
    for (const [name, value] of shared) response.headers.set(name, value)
    // For whoever keeps answers: another origin gets other headers.
    response.headers.set('vary', 'Origin')
    return response
  }
}

type Shared = readonly (readonly [name: string, value: string])[]
