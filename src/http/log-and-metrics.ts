// Tested in test/http/log-bytes.test.ts.
import { TOKEN_PREFIX } from '../domain/token.ts'
import { AppError, type ErrorKind } from '../error.ts'
import type { Logger } from '../log.ts'
import { bodyBytesOf, type CacheControl, ERRORS, errorResponse, type HttpErrorKind } from './answers.ts'
import { answerAfterBody, hasRequestBody } from './body.ts'
import { clientAddressFinder } from './client-address.ts'
import type { Handle } from './connection.ts'
import type { Services } from './options.ts'
import {
  CONTEXT,
  type Handler,
  OTHER_OPERATION,
  type RequestContext,
  type RequestWithContext,
} from './request-context.ts'

/**
 * Surrounds every request: gives it an id, and its answer the headers that every answer has; writes its log line, and counts
 * it. Whatever goes wrong inside, an answer comes out. What `answer` gives at once does not wait for a promise.
 */
export function withLogAndMetrics(answer: Handler, services: Services): Handle {
  const { log, accessLog, logAddresses, statistics, draining, idleTimeout, monotonicMs, deadlines } = services
  const isRecording = accessLog || statistics !== undefined
  const addressOf = accessLog && logAddresses ? clientAddressFinder(services.trustedProxy) : undefined

  const finish = (context: RequestContext, response: Response, readyMs = isRecording ? monotonicMs() : 0): Response => {
    setCommonHeaders(response, context, services)
    if (!isRecording) return response
    const durationMs = readyMs - context.startedMs
    // The runtime drops the body of an answer to HEAD, and sends its length.
    const bodyBytes = context.request.method === 'HEAD' ? 0 : bodyBytesOf(response)
    statistics?.answer(context, response.status, durationMs, bodyBytes)
    if (context.streamEnd === undefined) end(context, response.status, durationMs, bodyBytes, services)
    else void context.streamEnd.then((bytes) => end(context, response.status, durationMs, bytes, services))
    return response
  }
  const finishLater = async (context: RequestContext, answered: Response | Promise<Response>, hasBody: boolean) => {
    const response = await Promise.resolve(answered).catch((error) => answerError(error, context, log))
    // An operation reads a body to its end, unless it is too large.
    if (!hasBody || (context.request.bodyUsed && response.status !== 413)) return finish(context, response)
    // However slowly the client sends the rest, the duration ends here.
    const readyMs = monotonicMs()
    return finish(context, await answerAfterBody(context.request, response, idleTimeout, draining, deadlines), readyMs)
  }

  return (request: RequestWithContext, connection) => {
    if (statistics !== undefined) statistics.inFlight++
    const context: RequestContext = {
      requestId: requestId(request),
      request,
      url: request.url,
      connection,
      startedMs: isRecording ? monotonicMs() : 0,
      // At once: the runtime forgets the address when the client goes away.
      remoteAddress: addressOf?.(request, connection),
      operation: OTHER_OPERATION,
      caller: undefined,
      plantId: undefined,
      error: undefined,
      streamEnd: undefined,
    }
    const hasBody = hasRequestBody(request)
    try {
      fixUrlForRouter(context)
      request[CONTEXT] = context
      const answered = answer(request, context)
      if (hasBody || answered instanceof Promise) return finishLater(context, answered, hasBody)
      return finish(context, answered)
    } catch (error) {
      return finishLater(context, answerError(error, context, log), hasBody)
    }
  }
}

/** Ends a request whose answer has this body: that of a streamed list when the stream ends. Writes the log line. */
function end(
  { request, url, requestId, operation, remoteAddress, caller, plantId }: RequestContext,
  status: number,
  durationMs: number,
  bytes: number,
  { log, accessLog, logAddresses, statistics }: Services,
): void {
  if (statistics !== undefined) statistics.inFlight--
  if (!accessLog) return
  const { method, headers } = request
  const userAgent = (logAddresses && headers.get('user-agent')) || undefined
  const [, traceId, spanId] = TRACEPARENT.exec(headers.get('traceparent') ?? '') ?? []
  log.info(
    {
      requestId,
      operation,
      method,
      path: withoutTokens(pathOf(url)),
      status,
      durationMs: Math.round(durationMs * 1000) / 1000,
      bytes,
      user: caller?.userName,
      tokenId: caller?.id,
      subject: caller?.subject?.slice(0, SUBJECT_MAX_LENGTH),
      plantId: plantId?.toString(),
      remoteAddress,
      userAgent: userAgent && withoutTokens(userAgent).slice(0, USER_AGENT_MAX_LENGTH),
      traceId,
      spanId,
    },
    'request',
  )
}

/** How much of a `User-Agent` and of the subject of a JWT the log shows. */
export const USER_AGENT_MAX_LENGTH = 200
export const SUBJECT_MAX_LENGTH = 100

/**
 * A valid `traceparent` with the ids of the trace and of the client's span (https://www.w3.org/TR/trace-context). Version 00 ends
 * after the flags, a later version may go on. Version ff and ids of zeros are invalid.
 */
const TRACEPARENT = /^(?!ff)(?!00.{53}.)[\da-f]{2}-(?!0{32})([\da-f]{32})-(?!0{16})([\da-f]{16})-[\da-f]{2}(?:-|$)/

/** A token or most of one, percent-encoded too: some client put it in a path. No path of ours has such a word. */
const TOKEN_TEXT = new RegExp(`${TOKEN_PREFIX}[0-9A-Za-z]+|[0-9A-Za-z_%]{32,}`, 'g')

const withoutTokens = (text: string): string => text.replace(TOKEN_TEXT, `${TOKEN_PREFIX}***`)

const CLIENT_REQUEST_ID = new RegExp(`^(?!.*${TOKEN_PREFIX})[a-z0-9._-]{1,64}$`, 'i')

/** The client's own id if it is harmless and has no whole token in it, because the server sends and logs it; else a fresh one. */
function requestId(request: Request): string {
  const own = request.headers.get('x-request-id')
  return own !== null && CLIENT_REQUEST_ID.test(own) ? own : crypto.randomUUID()
}

/**
 * Elysia looks for the path behind `http://` and a host. Without a usable Host (HTTP/1.0 needs none) the URL is only a path, and
 * `https://` is longer by a letter. For either the request itself gets a URL that the router can read: the body of a
 * copy could not be left unread. Throws `several_hosts`.
 */
function fixUrlForRouter({ request, url }: RequestContext): void {
  // The runtime joins several Host lines with a comma and a space, which no host name has.
  if (request.headers.get('host')?.includes(', ')) throw new AppError('several_hosts')
  if (url.startsWith('https:')) Object.defineProperty(request, 'url', { value: `http:${url.slice('https:'.length)}` })
  if (url.startsWith('/')) Object.defineProperty(request, 'url', { value: new URL(`http://localhost${url}`).href })
}

/** The path of a URL, as it was sent, without the query. */
export function pathOf(url: string): string {
  // It follows the scheme and the host, unless the URL is a path itself.
  const start = url.startsWith('/') ? 0 : url.indexOf('/', 'https://'.length)
  const end = url.indexOf('?', start)
  return url.slice(start, end === -1 ? undefined : end)
}

/** For how long a browser connects to this host only by TLS (RFC 6797 §6.1). */
const ONE_YEAR = 'max-age=31536000'

function setCommonHeaders(
  { headers, status }: Response,
  { requestId, request: { method } }: RequestContext,
  { draining, tlsCert }: Services,
): void {
  headers.set('x-request-id', requestId)
  // Answers with JSON have these two already.
  if (!headers.has('cache-control')) {
    headers.set('x-content-type-options', 'nosniff')
    headers.set('cache-control', (headers.has('etag') ? 'private, no-cache' : 'no-store') satisfies CacheControl)
  }
  if (tlsCert !== undefined) headers.set('strict-transport-security', ONE_YEAR)
  // Elysia gives an answer to HEAD the length of the body that it has, and this one has none.
  if (status === 304) headers.delete('content-length')
  // The runtime dates every answer but those to HEAD.
  if (method === 'HEAD') headers.set('date', new Date().toUTCString())
  // After any answer to CONNECT, the runtime would take what follows for data to pass on.
  if (draining.signal.aborted || method === 'CONNECT') headers.set('connection', 'close')
}

const OUTCOME_UNKNOWN = 'Whether this request took effect is unknown: get the plant before you repeat it.'

/**
 * The answer to whatever was thrown. Records the error in the context, and logs what the operator has to know. An error that
 * is not an `AppError` is a bug: its text goes to no client.
 */
export function answerError(error: unknown, context: RequestContext, log: Logger): Response {
  const isExpected = error instanceof AppError && isHttpErrorKind(error.kind)
  const kind = isExpected ? error.kind : 'bug'
  context.error ??= kind
  if (ERRORS[kind].code >= 50000) logFault(log, context, error)
  if (!isExpected) return errorResponse(kind, `${ERRORS.bug.message.slice(0, -1)} ${context.requestId}.`)
  if (error.outcomeIsUnknown) return errorResponse(kind, `The store has failed. ${OUTCOME_UNKNOWN}`)
  const { retryAfterS } = error
  return errorResponse(kind, error.message, retryAfterS === undefined ? {} : { 'retry-after': String(retryAfterS) })
}

const isHttpErrorKind = (kind: ErrorKind): kind is HttpErrorKind => kind in ERRORS

/** Writes a line for the operator about a fault that no client is told. A bug has its stack. */
export function logFault(log: Logger, { requestId }: RequestContext, error: unknown): void {
  if (!(error instanceof AppError)) {
    log.error({ requestId, err: error }, 'a bug')
    return
  }
  // Without a cause the server refuses on purpose, for example while it ends.
  if (error.cause === undefined) return
  const line = { requestId, kind: error.kind, reason: String(error.cause) }
  if (error.kind === 'store_failed') log.error(line, 'the store has failed')
  else log.warn(line, 'the store refused')
}
