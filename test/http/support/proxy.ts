import { urlOf } from './page.ts'

/** Sends a request on to the server, and returns the answer. */
type Ask = () => Promise<Response>

/** Answers a request in the place of the server, after it was asked or not. `undefined` if the proxy passes the request on. */
type Answer = (request: Request, ask: Ask) => Promise<Response> | Response | undefined

/** Starts a proxy before a server. Under /garden/ it serves the same behind a prefix. */
export function startProxy(server: { readonly port: number }) {
  let answer: Answer = () => undefined
  const proxy = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    // A test of silence takes as long as it likes.
    idleTimeout: 0,
    fetch(request) {
      const { pathname, search } = new URL(request.url)
      const target = `${urlOf(server)}${pathname.replace('/garden/', '/').slice(1)}${search}`
      const { method, headers, body } = request
      // Not with the signal of the request, which ends when the client goes.
      const ask = () => fetch(target, { method, headers, body, decompress: false })
      return answer(request, ask) ?? ask()
    },
  })
  return {
    port: proxy.port ?? 0,
    /** Answers requests in another way from now on, or passes all of them on. */
    answer(next: Answer = () => undefined): void {
      answer = next
    },
    [Symbol.dispose]: () => void proxy.stop(true),
  }
}
