import { createTokenCache } from './authentication.ts'
import { createLimits } from './limits.ts'
import { createListCache } from './lists/list-cache.ts'
import type { AppOptions } from './options.ts'

/** What the routes share: the options, and the limits and caches made of them. */
export type AppParts = ReturnType<typeof makeParts>

export const makeParts = (options: AppOptions) => ({
  ...options,
  limits: createLimits(options),
  tokens: createTokenCache(options),
  lists: createListCache(options),
})
