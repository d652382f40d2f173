import type { Caller } from './access/callers.ts'
import type { HttpErrorKind } from './errors.ts'

/** How long a client may take for a part of a long answer, in seconds: the most that the runtime counts. */
export const SLOW_READER_S = 255

/** The server that a request came to. */
export interface Connection {
  /** Sets how long nothing may happen on the connection of a request, until the next request comes on it. */
  timeout(request: Request, seconds: number): void
}

/** What is known of a request while it is answered: for its log line, and for what it tells the client of itself. */
export interface RequestContext {
  /** The request as the server gave it; `connection` is `undefined` where no server did. */
  readonly received: Request
  readonly connection: Connection | undefined
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

/**
 * Gives the client of a long answer more than the idle timeout for each part of it. The runtime sees progress only when the
 * kernel's send buffer, of up to 4 MB, has room again: at 16 KB/s that can take minutes.
 */
export const allowSlowReader = ({ connection, received }: RequestContext): void =>
  connection?.timeout(received, SLOW_READER_S)

/** The context of a request that `observe` passed on. */
export function contextOf(request: Request): RequestContext {
  const context = contexts.get(request)
  if (context === undefined) throw new TypeError('the request did not come through observe()')
  return context
}
