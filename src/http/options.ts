import type { Settings } from '../config.ts'
import type { Store } from '../domain/store.ts'
import type { Caller } from '../domain/token.ts'
import type { Logger } from '../log.ts'
import type { RequestStatistics } from './statistics.ts'

/** The settings that say how requests are answered. Sizes are in bytes, and times in milliseconds. */
type RequestSettings = Pick<
  Settings,
  | ('maxBody' | 'listMax' | 'rateLimit' | 'idleTimeout' | 'tlsCert' | 'corsOrigin')
  | ('page' | 'docs' | 'publicUrl' | 'accessLog' | 'logAddresses' | 'trustedProxy')
>

/** What the service is made of. `undefined` means that a limit is off, or that nobody asks for it. */
export interface AppOptions extends RequestSettings {
  readonly store: Store
  /** Called with every token that is accepted. */
  readonly recordUse: (token: Caller) => void
  readonly log: Logger
  readonly statistics: RequestStatistics | undefined
  /** Aborted at the first signal: the server is about to end. */
  readonly drain: AbortController
  /** When the last check began that found the store ready, in Unix milliseconds. All threads share this one number. */
  readonly readyAtMs: Float64Array
  /** Whose JWTs the service accepts beside its own tokens. */
  readonly provider: IdentityProvider | undefined
  /** How many threads of this process answer requests. They share the memory for caches. */
  readonly threads: number
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
