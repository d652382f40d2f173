import { cors } from '@elysiajs/cors'
import { Elysia } from 'elysia'
import type { Handle } from './server.ts'

/** The methods and headers that pages may send, and the headers of an answer that they may read (Fetch standard §3.3). */
const METHODS = ['GET', 'HEAD', 'POST', 'DELETE'] as const
const SENT_HEADERS = ['Authorization', 'Content-Type', 'If-Match', 'If-None-Match', 'X-Request-Id']
const EXPOSED_HEADERS = ['Link', 'ETag', 'Retry-After', 'X-Request-Id']
/** How long a browser may keep the answer to a preflight request. */
const PREFLIGHT_MAX_AGE_S = 600

/**
 * Lets pages of these origins, and of no others, read all answers of the app. The CORS plugin makes the headers. It is no plugin
 * of the app itself: there it would answer OPTIONS without `Allow`, on unknown paths too, and give headers to origins that are
 * not listed.
 */
export function shareWith(origins: readonly string[], app: Handle): Handle {
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

  return async (request, connection) => {
    const response = await app(request, connection)
    const origin = request.headers.get('origin')
    if (origin !== null && origins.includes(origin)) {
      const method = request.method === 'OPTIONS' ? 'OPTIONS' : 'GET'
      const asked = { origin, 'access-control-request-method': 'GET' }
      const { headers } = await plugin.fetch(new Request('http://localhost/', { method, headers: asked }))
      for (const [name, value] of headers) if (name.startsWith('access-control-')) response.headers.set(name, value)
    }
    // Caches must know that another origin gets other headers.
    response.headers.append('vary', 'Origin')
    return response
  }
}
