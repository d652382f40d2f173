import type { RateLimiterRes } from 'rate-limiter-flexible'
import type { Caller } from '../domain/token.ts'
import { AppError } from '../error.ts'
import type { AppOptions } from './options.ts'

/** Returns a function that counts a request of a token, or of the user of a JWT. A period begins with its first request. */
export function limitRate({ requests, periodMs }: NonNullable<AppOptions['rateLimit']>) {
  // Only a server with a limit loads the library.
  const loading = import('rate-limiter-flexible').then(
    ({ RateLimiterMemory }) => new RateLimiterMemory({ points: requests, duration: periodMs / 1000 }),
  )
  return async ({ id, userName }: Caller): Promise<void> => {
    const limiter = await loading
    // A limiter in memory has no other reason to reject.
    await limiter.consume(id ?? userName).catch(({ msBeforeNext }: RateLimiterRes) => {
      throw new AppError('rate_exceeded', { retryAfterS: Math.max(1, Math.ceil(msBeforeNext / 1000)) })
    })
  }
}
