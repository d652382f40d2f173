import type { Store } from '../domain/store.ts'
import type { Token } from '../domain/token.ts'
import type { Logger } from '../log.ts'
import { createTokenCache, type TokenCache } from './authentication.ts'
import { createLimits, type Limits, type RateLimit } from './limits.ts'
import { createListCache, type ListCache } from './lists/list-cache.ts'
import type { Lifecycle } from './observe.ts'
import type { RequestStatistics } from './statistics.ts'

/** What the service is made of. `undefined` means that a limit is off, or that nobody asks for it. */
export interface AppOptions {
  readonly store: Store
  /** Called with every token that is accepted. */
  readonly recordUse: (token: Token) => void
  readonly log: Logger
  readonly logsRequests: boolean
  readonly statistics: RequestStatistics | undefined
  readonly lifecycle: Lifecycle
  readonly usesTls: boolean
  /** The largest body that a request may send. */
  readonly maxBodyBytes: number
  /** The most plants in one answer. */
  readonly listMax: number | undefined
  readonly rateLimit: RateLimit | undefined
  /** The most requests under way, from the acceptance of the token to the end of the answer. */
  readonly maxInFlight: number | undefined
  readonly servesDocs: boolean
  /** The origins whose pages may read answers. */
  readonly corsOrigins: readonly string[]
  /** Where clients reach this service, for the documentation. */
  readonly publicUrl: string | undefined
  /** Milliseconds since 1970-01-01 UTC. */
  readonly nowMs: () => number
  /** Milliseconds of a clock that never jumps. */
  readonly monotonicMs: () => number
}

/** What the routes share. */
export interface AppParts extends AppOptions {
  readonly limits: Limits | undefined
  readonly tokens: TokenCache
  readonly lists: ListCache
}

/** Makes the limits and the caches of a service. */
export const makeParts = (options: AppOptions): AppParts => ({
  ...options,
  limits: createLimits(options.rateLimit, options.maxInFlight),
  tokens: createTokenCache(options),
  lists: createListCache(options.store, options.statistics),
})
