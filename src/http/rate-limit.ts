import { AppError } from '../domain/error.ts'
import type { Caller } from '../domain/token.ts'
import type { RateLimit } from './options.ts'

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
