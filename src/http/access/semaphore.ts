import { AppError } from '../../domain/error.ts'
import { contextOf } from '../context.ts'

/** Counts the requests under way that a token was accepted for. */
export type Semaphore = ReturnType<typeof createSemaphore>

/**
 * A semaphore with `max` places. A request without a place is checked like any other, and refused only where it would go
 * to the store: a wrong request learns what is wrong with it, however busy the server is.
 */
export function createSemaphore(max: number) {
  const holders = new Set<Request>()
  return {
    /** Gives the request a place if one is free. */
    acquire(request: Request): void {
      if (holders.size < max) holders.add(request)
    },
    /** Rejects a request without a place with `store_busy`. */
    requirePlace(request: Request): void {
      if (holders.has(request)) return
      contextOf(request).error = 'in_flight_limit'
      throw new AppError('store_busy')
    },
    /** Frees the place of the request, if it has one. */
    release(request: Request): void {
      holders.delete(request)
    },
  }
}
