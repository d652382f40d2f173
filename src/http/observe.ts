import { TOKEN_PREFIX } from '../domain/token.ts'
import type { Logger } from '../log.ts'
import type { Semaphore } from './access/semaphore.ts'
import { type RequestContext, setContext } from './context.ts'
import { answerError } from './errors.ts'
import type { CacheControl } from './json.ts'
import { streamEnd } from './lists/streamed-list.ts'
import { logRequest } from './log-request.ts'
import { type OperationOf, pathOf } from './operations.ts'
import type { Lifecycle } from './probes.ts'
import { routable } from './routable.ts'
import type { RequestStatistics } from './statistics.ts'

type Answer = Response | Promise<Response>

/** It has no token in it, because the server sends and logs it. */
const CLIENT_REQUEST_ID = new RegExp(`^(?!.*${TOKEN_PREFIX})[a-z0-9._-]{1,64}$`, 'i')

/** For how long a browser connects to this host by TLS alone (RFC 6797 §6.1). */
const ONE_YEAR = 'max-age=31536000'

interface Observation {
  readonly log: Logger
  readonly logsRequests: boolean
  /** Counts the requests; `undefined` if nobody asks for metrics. */
  readonly statistics: RequestStatistics | undefined
  readonly lifecycle: Lifecycle
  /** Whether browsers shall come back by TLS alone. */
  readonly usesTls: boolean
  /** Milliseconds of a clock that never jumps. */
  readonly monotonicMs: () => number
  readonly operationOf: OperationOf
  readonly semaphore: Semaphore | undefined
}

/**
 * Surrounds every request: gives it an id, and its answer the headers that every answer has; writes its log line, and counts
 * it. Whatever goes wrong inside, an answer comes out. An answer that `handle` gives at once does not wait for a promise.
 */
export function observe(handle: (request: Request) => Answer, options: Observation) {
  const { log, logsRequests, statistics, lifecycle, usesTls, monotonicMs, operationOf, semaphore } = options
  const isLogging = logsRequests && log.isLevelEnabled('info')
  const isTimed = isLogging || statistics !== undefined

  const record = (request: Request, context: RequestContext, { status }: Response, startedMs: number) => {
    const { method, url } = request
    const answered = { operation: operationOf(method, url), status, durationMs: monotonicMs() - startedMs }
    statistics?.answer(answered, context.error)
    if (isLogging) logRequest(log, { method, path: pathOf(url), ...answered }, context)
  }
  const end = (request: Request) => {
    statistics?.end()
    semaphore?.release(request)
  }
  const finish = (request: Request, context: RequestContext, response: Response, startedMs: number): Response => {
    setCommonHeaders(response.headers, request, context, lifecycle)
    if (usesTls) response.headers.set('strict-transport-security', ONE_YEAR)
    if (isTimed) record(request, context, response, startedMs)
    if (statistics !== undefined || semaphore !== undefined) {
      const ended = streamEnd(response)
      if (ended === undefined) end(request)
      else void ended.then(() => end(request))
    }
    return response
  }
  // A function of its own, so that only a request that waits allocates these two.
  const finishLater = (request: Request, context: RequestContext, answer: Promise<Response>, startedMs: number) =>
    answer.then(
      (response) => finish(request, context, response, startedMs),
      (error: unknown) => finish(request, context, answerError(error, context, log), startedMs),
    )

  return (received: Request): Answer => {
    const startedMs = isTimed ? monotonicMs() : 0
    statistics?.begin()
    const context: RequestContext = { requestId: requestId(received), caller: undefined, error: undefined }
    let request = received
    try {
      request = routable(received)
      setContext(request, context)
      const answer = handle(request)
      if (answer instanceof Promise) return finishLater(request, context, answer, startedMs)
      return finish(request, context, answer, startedMs)
    } catch (error) {
      return finish(request, context, answerError(error, context, log), startedMs)
    }
  }
}

/** The client's own id if it is harmless and has no token in it, else a fresh one. */
function requestId(request: Request): string {
  const own = request.headers.get('x-request-id')
  return own !== null && CLIENT_REQUEST_ID.test(own) ? own : crypto.randomUUID()
}

function setCommonHeaders(headers: Headers, { method }: Request, context: RequestContext, lifecycle: Lifecycle): void {
  headers.set('x-request-id', context.requestId)
  // Answers with JSON have these two already.
  if (!headers.has('cache-control')) {
    headers.set('x-content-type-options', 'nosniff')
    headers.set('cache-control', (headers.has('etag') ? 'private, no-cache' : 'no-store') satisfies CacheControl)
  }
  // The runtime dates every answer but those to HEAD.
  if (method === 'HEAD') headers.set('date', new Date().toUTCString())
  // After any answer to CONNECT, the runtime would take what follows for data to pass on.
  if (lifecycle.isDraining || method === 'CONNECT') headers.set('connection', 'close')
}
