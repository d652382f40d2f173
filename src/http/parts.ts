import { createTokenCache } from './authentication.ts'
import { createListCache } from './lists/list-cache.ts'
import type { AppOptions } from './options.ts'
import { limitRate } from './rate-limit.ts'

/** What the routes share: the options, and the rate limit and the caches made of them. */
export type AppParts = ReturnType<typeof makeParts>

export const makeParts = (options: AppOptions) => ({
  ...options,
  /** Called with each accepted token before anything else of its request is checked. Rejects with `rate_exceeded`. */
  admit: options.rateLimit && limitRate(options.rateLimit),
  tokens: createTokenCache(options),
  lists: createListCache(options),
})
