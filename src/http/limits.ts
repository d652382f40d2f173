import { AppError } from '../domain/error.ts'
import type { Caller } from '../domain/token.ts'
import { contextOf, type RequestContext } from './observe.ts'
import type { AppOptions, RateLimit } from './options.ts'

/**
 * Makes the limits that the options name: a rate for each token, and a semaphore for the requests under way. `undefined` if they
 * name none.
 */
export function createLimits({ rateLimit, maxInFlight }: Pick<AppOptions, 'rateLimit' | 'maxInFlight'>) {
  if (rateLimit === undefined && maxInFlight === undefined) return undefined
  const countRequest = rateLimit && limitRate(rateLimit)
  const holders = new Set<RequestContext>()
  return {
    /** Counts a request right after its token was accepted, and gives it a place if one is free. Rejects with `rate_exceeded`. */
    async admit(caller: Caller, request: Request): Promise<void> {
      await countRequest?.(caller)
      if (maxInFlight !== undefined && holders.size < maxInFlight) holders.add(contextOf(request))
    },
    /**
     * Rejects a request without a place with `store_busy`. Called where a request would go to the store, so that a wrong request
     * learns what is wrong with it, however busy the server is.
     */
    requirePlace(request: Request): void {
      const context = contextOf(request)
      if (maxInFlight === undefined || holders.has(context)) return
      context.error = 'in_flight_limit'
      throw new AppError('store_busy')
    },
    /** Frees the place of the request, if it has one. */
    release(context: RequestContext): void {
      holders.delete(context)
    },
  }
}

/** Counts a request of a token, or rejects with `rate_exceeded`. A period begins with a request, and its count ends with it. */
export function limitRate(limit: RateLimit): (token: Caller) => Promise<void> {
  let loading: ReturnType<typeof loadLimiter> | undefined
  return async ({ id }) => {
    // The library loads at the first request: it would take a quarter of a start.
    loading ??= loadLimiter(limit)
    const { limiter, RateLimiterRes } = await loading
    try {
      await limiter.consume(id)
    } catch (thrown) {
      if (!(thrown instanceof RateLimiterRes)) throw thrown
      throw new AppError('rate_exceeded', { retryAfterS: Math.max(1, Math.ceil(thrown.msBeforeNext / 1000)) })
    }
  }
}

async function loadLimiter({ requests, periodMs }: RateLimit) {
  const { RateLimiterMemory, RateLimiterRes } = await import('rate-limiter-flexible')
  return { limiter: new RateLimiterMemory({ points: requests, duration: periodMs / 1000 }), RateLimiterRes }
}
