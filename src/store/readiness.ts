import { AppError } from '../domain/error.ts'
import type { Store } from '../domain/store.ts'

/** The methods of a store that check its health. */
export type HealthMethods = Pick<Store, 'checkReady' | 'checkIntegrity'>

/** Rethrows the error of a write that changes nothing. Its outcome does not matter. */
export function withKnownOutcome(error: unknown): never {
  throw error instanceof AppError ? new AppError(error.kind, { cause: error.cause }) : error
}
