/**
 * Elysia looks for the path behind `http://` and a host. Without a usable Host (HTTP/1.0 needs none) the URL is a path alone, and
 * `https://` is longer by a letter. For either the router gets a copy of the request with a URL that it can read.
 */
export function routable(request: Request): Request {
  const { url } = request
  if (url.startsWith('https:')) return copyOf(request, `http:${url.slice('https:'.length)}`)
  return url.startsWith('/') ? copyOf(request, new URL(`http://localhost${url}`).href) : request
}

function copyOf(request: Request, url: string): Request {
  const copy = new Request(url, request)
  received.set(copy, request)
  return copy
}

/** The request as the server received it. */
export const receivedRequest = (request: Request): Request => received.get(request) ?? request

const received = new WeakMap<Request, Request>()
