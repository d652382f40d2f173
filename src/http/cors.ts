import type { Handle } from './connection.ts'

/** The methods and headers that pages may send, and the headers of an answer that they may read (Fetch standard §3.3). */
const METHODS = 'GET, HEAD, POST, PUT, DELETE'
const SENT_HEADERS = 'Authorization, Content-Type, If-Match, If-None-Match, X-Request-Id'
const EXPOSED_HEADERS = 'Link, ETag, Retry-After, X-Request-Id'
/** How long a browser may keep the answer to a preflight request. */
const PREFLIGHT_MAX_AGE_S = '600'

/** Lets pages of these origins, and of no others, read all answers of the app, errors included. */
export const allowOrigins =
  (origins: readonly string[], app: Handle): Handle =>
  async (request, connection) => {
    const response = await app(request, connection)
    const { headers } = response
    const origin = request.headers.get('origin')
    if (origin !== null && origins.includes(origin)) {
      headers.set('access-control-allow-headers', SENT_HEADERS)
      headers.set('access-control-allow-methods', METHODS)
      headers.set('access-control-allow-origin', origin)
      headers.set('access-control-expose-headers', EXPOSED_HEADERS)
      if (request.method === 'OPTIONS') headers.set('access-control-max-age', PREFLIGHT_MAX_AGE_S)
    }
    // Caches must know that another origin gets other headers.
    headers.append('vary', 'Origin')
    return response
  }
