import type { Caller } from './callers.ts'
import { limitRate, type RateLimit } from './rate-limit.ts'

/** How much those who get in may ask for. */
export interface AdmissionLimits {
  /** `undefined` where there is no such limit. */
  readonly rateLimit: RateLimit | undefined
}

/** Admits a request whose token was accepted, before anything else of it is looked at, or rejects with `rate_exceeded`. */
export type Admit = (caller: Caller) => Promise<void>

/** What admits requests; `undefined` where nothing is limited, so that this costs nothing. */
export function admission({ rateLimit }: AdmissionLimits): Admit | undefined {
  if (rateLimit === undefined) return undefined
  const countRequest = limitRate(rateLimit)
  return ({ token }) => countRequest(token)
}
