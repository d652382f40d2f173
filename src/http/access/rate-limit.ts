import { AppError } from '../../domain/error.ts'
import type { Token, TokenId } from '../../domain/token.ts'

/** How many requests a token may make of this process, which knows nothing of others. */
export interface RateLimit {
  readonly requests: number
  readonly periodMs: number
  /** How many more a token may make in `BURST_PERIODS` periods. */
  readonly burst: number
}

/** For how many periods a burst has to last. */
export const BURST_PERIODS = 10

/**
 * Counts a request of a token, or rejects with `rate_exceeded`. Periods begin with a token's first request. What is
 * remembered of a token is a count for each of its periods, and ends with them.
 */
export function limitRate(limit: RateLimit): (token: Token) => Promise<void> {
  let making: ReturnType<typeof makeCount> | undefined
  return async ({ id }) => {
    // Not before somebody comes: loading the library would take a quarter of a start.
    making ??= makeCount(limit)
    const count = await making
    const waitMs = await count(id)
    if (waitMs !== undefined)
      throw new AppError('rate_exceeded', { retryAfterS: Math.max(1, Math.ceil(waitMs / 1000)) })
  }
}

/** Counts a request of a token; one too many resolves to the milliseconds after which the next is none. */
async function makeCount({ requests, periodMs, burst }: RateLimit) {
  const { BurstyRateLimiter, RateLimiterMemory, RateLimiterRes } = await import('rate-limiter-flexible')
  const duration = periodMs / 1000
  const steady = new RateLimiterMemory({ points: requests, duration })
  const bursts = new RateLimiterMemory({ points: burst, duration: duration * BURST_PERIODS })
  const limiter = burst === 0 ? steady : new BurstyRateLimiter(steady, bursts)
  return async (id: TokenId): Promise<number | undefined> => {
    try {
      await limiter.consume(id)
    } catch (thrown) {
      if (thrown instanceof RateLimiterRes) return thrown.msBeforeNext
      throw thrown
    }
  }
}
