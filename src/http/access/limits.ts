import type { Token } from '../../domain/token.ts'
import { limitRate, type RateLimit } from './rate-limit.ts'
import { createSemaphore, type Semaphore } from './semaphore.ts'

/** How much those with a token may ask for; `undefined` means no limit. */
export interface LimitOptions {
  readonly rateLimit: RateLimit | undefined
  /** The most requests under way, from the acceptance of the token to the end of the answer. */
  readonly maxInFlight: number | undefined
}

/** The limits of a service. */
export interface Limits {
  readonly semaphore: Semaphore | undefined
  /** Admits a request right after its token was accepted, or rejects with `rate_exceeded`. Absent if nothing is limited. */
  readonly admit: ((caller: Token, request: Request) => Promise<void>) | undefined
}

/** Makes the limits that the options name. A limit that is not set costs nothing. */
export function createLimits({ rateLimit, maxInFlight }: LimitOptions): Limits {
  const semaphore = maxInFlight === undefined ? undefined : createSemaphore(maxInFlight)
  const countRequest = rateLimit && limitRate(rateLimit)
  if (semaphore === undefined && countRequest === undefined) return { semaphore, admit: undefined }
  return {
    semaphore,
    async admit(caller, request) {
      await countRequest?.(caller)
      semaphore?.acquire(request)
    },
  }
}
