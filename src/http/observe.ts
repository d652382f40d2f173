import { AppError } from '../domain/error.ts'
import { TOKEN_PREFIX } from '../domain/token.ts'
import type { Logger } from '../log.ts'
import type { Connection, RequestContext } from './context.ts'
import { httpErrorKindOf, isServerFault, toErrorResponse } from './errors.ts'
import type { CacheControl } from './json.ts'
import { operationOf, pathOf } from './operations.ts'
import type { Lifecycle } from './probes.ts'
import type { Answered, RequestStatistics } from './statistics.ts'

type Answer = Response | Promise<Response>
/** What answers a request in its context. */
export type Handle = (request: Request, context: RequestContext) => Answer

/** It has no token in it, because it is answered and logged. */
const CLIENT_REQUEST_ID = new RegExp(`^(?!.*${TOKEN_PREFIX})[a-z0-9._-]{1,64}$`, 'i')

/** For how long a browser asks this host by TLS alone (RFC 6797 §6.1). */
const ONE_YEAR = 'max-age=31536000'

interface Observation {
  readonly log: Logger
  readonly logsRequests: boolean
  /** Where requests are counted; `undefined` where they are not. */
  readonly statistics: RequestStatistics | undefined
  readonly lifecycle: Lifecycle
  /** Whether clients are to come back by TLS alone. */
  readonly usesTls: boolean
  readonly monotonicMs: () => number
}

/**
 * What surrounds every request: its id, its clock, the headers that every answer has, its log line. Whatever goes wrong
 * inside, an answer comes out. What is answered at once is not made to wait.
 */
export function observe(
  handle: Handle,
  { log, logsRequests, statistics, lifecycle, usesTls, monotonicMs }: Observation,
) {
  const isLogging = logsRequests && log.isLevelEnabled('info')
  const isTimed = isLogging || statistics !== undefined

  const finish = (request: Request, context: RequestContext, response: Response): Response => {
    setCommonHeaders(response.headers, request, context, lifecycle)
    if (usesTls) response.headers.set('strict-transport-security', ONE_YEAR)
    if (!isTimed) return response
    const { method, url } = request
    const answered = {
      operation: operationOf(method, url),
      status: response.status,
      durationMs: monotonicMs() - context.startedMs,
    }
    statistics?.answer(context, answered)
    if (isLogging) logRequest(log, { method, path: pathOf(url), ...answered }, context)
    return response
  }
  const fail = (request: Request, context: RequestContext, error: unknown): Response => {
    context.refusal = httpErrorKindOf(error)
    if (isServerFault(error)) logFault(log, context, error)
    return finish(request, context, toErrorResponse(error, context.requestId))
  }
  // Apart, so that only who waits pays for what remembers the request until then.
  const finishLater = (request: Request, context: RequestContext, answer: Promise<Response>): Promise<Response> =>
    answer.then(
      (response) => finish(request, context, response),
      (error: unknown) => fail(request, context, error),
    )

  return (request: Request, connection?: Connection): Answer => {
    const startedMs = isTimed ? monotonicMs() : 0
    statistics?.begin()
    const context: RequestContext = { received: request, connection, requestId: requestId(request), startedMs }
    try {
      const answer = handleRoutable(handle, request, context)
      return answer instanceof Promise ? finishLater(request, context, answer) : finish(request, context, answer)
    } catch (error) {
      return fail(request, context, error)
    }
  }
}

function handleRoutable(handle: Handle, request: Request, context: RequestContext): Answer {
  // Two Host lines arrive joined by a comma and a space, which no host name has.
  if (request.headers.get('host')?.includes(', ')) throw new AppError('several_hosts')
  return handle(routable(request), context)
}

/**
 * The router takes what follows `http://` for the host. Without a usable Host (HTTP/1.0 needs none) the URL is a path,
 * and with TLS it is longer by a letter: on either the router would go astray.
 */
function routable(request: Request): Request {
  const { url } = request
  if (url.startsWith('/')) return new Request(new URL(`http://localhost${url}`).href, request)
  return url.startsWith('https:') ? new Request(`http:${url.slice('https:'.length)}`, request) : request
}

/** The client's own id if it is harmless and has no token in it, else a fresh one. */
function requestId(request: Request): string {
  const own = request.headers.get('x-request-id')
  return own !== null && CLIENT_REQUEST_ID.test(own) ? own : crypto.randomUUID()
}

function setCommonHeaders(headers: Headers, request: Request, context: RequestContext, lifecycle: Lifecycle): void {
  headers.set('x-request-id', context.requestId)
  // Those of JSON answers have both.
  if (!headers.has('cache-control')) {
    headers.set('x-content-type-options', 'nosniff')
    headers.set('cache-control', (headers.has('etag') ? 'private, no-cache' : 'no-store') satisfies CacheControl)
  }
  const { method } = request
  // The runtime dates every answer but those to HEAD.
  if (method === 'HEAD') headers.set('date', new Date().toUTCString())
  // Whatever the answer to CONNECT is, the runtime takes what follows for something to be passed on, to nobody.
  if (lifecycle.isDraining || method === 'CONNECT') headers.set('connection', 'close')
}

interface LoggedRequest extends Answered {
  readonly method: string
  readonly path: string
}

function logRequest(log: Logger, request: LoggedRequest, { requestId, caller }: RequestContext): void {
  const { operation, method, path, status, durationMs } = request
  log.info(
    {
      requestId,
      operation,
      method,
      path: path.replace(TOKEN_TEXT, `${TOKEN_PREFIX}***`),
      status,
      durationMs: Math.round(durationMs * 1000) / 1000,
      user: caller?.token.userName,
      tokenId: caller?.token.id,
    },
    'request',
  )
}

/** One line for the operator about what no client is told; with a stack where that is a bug. */
export function logFault(log: Logger, { requestId }: RequestContext, error: unknown): void {
  if (!(error instanceof AppError)) {
    log.error({ requestId, err: error }, 'a bug')
    return
  }
  // Without a cause it is what the server does on purpose, like ending.
  if (error.cause === undefined) return
  const line = { requestId, kind: error.kind, reason: String(error.cause) }
  if (error.kind === 'store_failed') log.error(line, 'the store has failed')
  else log.warn(line, 'the store refused')
}

/**
 * What looks like a token or the most of one, percent-encoded too, wherever somebody put it: neither path nor query are
 * places for it, and no log keeps one. No path of ours has such a word.
 */
const TOKEN_TEXT = new RegExp(`${TOKEN_PREFIX}[0-9A-Za-z]+|[0-9A-Za-z_%]{32,}`, 'g')
