import type { TrustedProxy } from '../domain/address.ts'
import type { Store } from '../domain/store.ts'
import type { Caller } from '../domain/token.ts'
import type { Logger } from '../log.ts'
import type { RequestStatistics } from './statistics.ts'

/** What the service is made of. `undefined` means that a limit is off, or that nobody asks for it. */
export interface AppOptions {
  readonly store: Store
  /** Called with every token that is accepted. */
  readonly recordUse: (token: Caller) => void
  readonly log: Logger
  readonly logsRequests: boolean
  /** Whether the lines of requests have the addresses and agents of clients. */
  readonly logsAddresses: boolean
  readonly trustedProxies: readonly TrustedProxy[]
  readonly statistics: RequestStatistics | undefined
  readonly lifecycle: {
    /** Aborted at the first signal: the server is about to end. */
    readonly drain: AbortController
    /** When the last check began that found the store ready, in Unix milliseconds. All threads share this one number. */
    readonly readyAtMs: Float64Array
  }
  /** Whose JWTs the service accepts beside its own tokens. */
  readonly provider: IdentityProvider | undefined
  readonly usesTls: boolean
  /** How long a body that no operation reads may take to arrive. */
  readonly idleTimeoutMs: number
  /** The largest body that a request may send. */
  readonly maxBodyBytes: number
  /** The most plants in one answer. */
  readonly listMax: number | undefined
  /** How many requests a token may send to this process. Other processes count by themselves. */
  readonly rateLimit: { readonly requests: number; readonly periodMs: number } | undefined
  /** How much of the memory for caches this thread may use: 1 for all of it. */
  readonly cacheShare: number
  /** Whether there is a page for browsers at `/`. */
  readonly servesPage: boolean
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

/** Verifies JWTs. It rejects with `token_invalid`, or with `store_busy` while there are no keys. */
export interface IdentityProvider {
  readonly issuer: string
  verify(text: string): Promise<Omit<Caller, 'userId' | 'userBlockedAtMs'>>
}
