import { cors } from '@elysiajs/cors'
import { Elysia } from 'elysia'
import type { Connection } from './server.ts'

/** The methods and headers that pages may send, and the headers of an answer that they may read (Fetch standard §3.3). */
const METHODS = ['GET', 'HEAD', 'POST', 'DELETE'] as const
const SENT_HEADERS = ['Authorization', 'Content-Type', 'If-None-Match', 'X-Request-Id']
const EXPOSED_HEADERS = ['Link', 'ETag', 'Retry-After', 'X-Request-Id']
/** How long a browser may keep the answer to a preflight request. */
const PREFLIGHT_MAX_AGE_S = 600

type Answers = (request: Request, connection?: Connection) => Response | Promise<Response>

/**
 * Lets pages of these origins, and of no others, read all answers of the app. The CORS plugin makes the headers, once for each
 * origin. It is no plugin of the app itself: there it would answer OPTIONS without `Allow`, on unknown paths too, and give
 * headers to origins that are not listed.
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

  /** The headers for the origin of a request; none if the origin is not listed. */
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
    // Caches must know that another origin gets other headers.
    response.headers.set('vary', 'Origin')
    return response
  }
}

type Shared = readonly (readonly [name: string, value: string])[]
