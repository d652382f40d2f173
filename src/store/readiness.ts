import { AppError } from '../domain/error.ts'
import type { Store } from '../domain/store.ts'

/** The part of a store that is about its health. */
export type HealthMethods = Pick<Store, 'checkReady' | 'checkIntegrity'>

/** Throws what a write has rejected with that nobody asked for: there is nothing to be unsure of. */
export function withKnownOutcome(error: unknown): never {
  throw error instanceof AppError ? new AppError(error.kind, { cause: error.cause }) : error
}
