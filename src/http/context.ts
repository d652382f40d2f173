import type { Caller } from './callers.ts'
import type { HttpErrorKind } from './errors.ts'

/** What is known of a request while it is answered: for its log line, and for what it tells the client of itself. */
export interface RequestContext {
  readonly requestId: string
  /** When it came, in milliseconds of a clock that never jumps; 0 where nobody asks how long it took. */
  readonly startedMs: number
  caller?: Caller | undefined
  /** Ends its being under way, where those that are get counted. */
  leave?: (() => void) | undefined
  /** True where as many as may be were under way before it. */
  isPastLimit?: boolean
  /** The error that was answered. */
  refusal?: HttpErrorKind
  /** True where the answer goes on after it was begun; then `onStreamed` is called at its end. */
  isStreamed?: boolean
  onStreamed?: (() => void) | undefined
}

const contexts = new WeakMap<Request, RequestContext>()

/** Gives a request its context, for as long as the request itself is there. */
export const setContext = (request: Request, context: RequestContext): void => {
  contexts.set(request, context)
}

/** The context of a request that `observe` passed on. */
export function contextOf(request: Request): RequestContext {
  const context = contexts.get(request)
  if (context === undefined) throw new TypeError('the request did not come through observe()')
  return context
}
