import type { Token } from '../domain/token.ts'
import type { HttpErrorKind } from './errors.ts'

/** Why a request got an error: the error's kind, or `in_flight_limit` when --max-in-flight had no place for it. */
export type Refusal = HttpErrorKind | 'in_flight_limit'

/** What the log line and the metrics of a request need to know. */
export interface RequestContext {
  readonly requestId: string
  /** The token of the request, once the server has accepted it. */
  caller: Token | undefined
  /** The error that the request got. */
  error: Refusal | undefined
}

const CONTEXT = Symbol('context')

interface RequestWithContext extends Request {
  [CONTEXT]?: RequestContext
}

/** Gives a request its context. A property of the request costs less than a `WeakMap`, also in garbage collection. */
export const setContext = (request: RequestWithContext, context: RequestContext): void => {
  request[CONTEXT] = context
}

/** The context of a request that `observe` passed on. */
export function contextOf(request: RequestWithContext): RequestContext {
  const context = request[CONTEXT]
  if (context === undefined) throw new TypeError('the request did not come through observe()')
  return context
}
