// Tested in test/http/log-bytes.test.ts.
import type { Caller } from '../domain/token.ts'
import type { HttpErrorKind } from './answers.ts'
import type { Connection } from './connection.ts'

/** A request while the server answers it. */
export interface RequestContext {
  readonly requestId: string
  readonly request: Request
  /** The URL as the client sent it: the request may have another one for the router. */
  readonly url: string
  readonly connection: Connection | undefined
  /** When the server received the request, by `monotonicMs`. 0 if nobody asks how long it took. */
  readonly startedMs: number
  /** The address of the client, if the log shows it. */
  readonly remoteAddress: string | undefined
  operation: string
  /** The token of the request, once the server has accepted it. */
  caller: Caller | undefined
  /** The plant that the request writes, once it is known: the path of a create has no id, and that of a delete may encode it. */
  plantId: bigint | undefined
  error: HttpErrorKind | undefined
  /** Resolves to the bytes of a streamed body at its end, also if the client goes away; `undefined` for any other answer. */
  streamEnd: Promise<number> | undefined
}

/** The operation of requests that no route takes, and of OPTIONS. */
export const OTHER_OPERATION = 'other'

/** Where a request has its context, before Elysia makes its own and after. A property costs less than a `WeakMap`. */
export const CONTEXT = Symbol('context')

export interface RequestWithContext extends Request {
  [CONTEXT]?: RequestContext
}

/** Answers a request that `withLogAndMetrics` passes on. */
export type Handler = (request: Request, context: RequestContext) => Response | Promise<Response>

export function contextOf(request: RequestWithContext): RequestContext {
  const context = request[CONTEXT]
  if (context === undefined) throw new TypeError('the request did not come through withLogAndMetrics()')
  return context
}
