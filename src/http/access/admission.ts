import type { RequestContext } from '../context.ts'
import type { Caller } from './callers.ts'
import { limitInFlight } from './in-flight.ts'
import { limitRate, type RateLimit } from './rate-limit.ts'

/** How much those who get in may ask for; `undefined` where there is no such limit. */
export interface AdmissionLimits {
  readonly rateLimit: RateLimit | undefined
  /** The most requests under way, from the acceptance of the token to the end of the answer. */
  readonly maxInFlight: number | undefined
}

/** Admits a request whose token was accepted, before anything else of it is looked at, or rejects with `rate_exceeded`. */
export type Admit = (caller: Caller, context: RequestContext) => Promise<void>

/** What admits requests; `undefined` where nothing is limited, so that this costs nothing. */
export function admission({ rateLimit, maxInFlight }: AdmissionLimits): Admit | undefined {
  if (rateLimit === undefined && maxInFlight === undefined) return undefined
  const countRequest = rateLimit && limitRate(rateLimit)
  const enter = maxInFlight === undefined ? undefined : limitInFlight(maxInFlight)
  return async ({ token }, context) => {
    await countRequest?.(token)
    enter?.(context)
  }
}
