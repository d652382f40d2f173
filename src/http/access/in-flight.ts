import { AppError } from '../../domain/error.ts'
import type { RequestContext } from '../context.ts'
import type { Handle } from '../observe.ts'

/**
 * Counts requests that are under way, and notes in their contexts how they end being so, or that they are past `max`.
 * Those past it are looked at like any other, and refused where they would go to the store.
 */
export function limitInFlight(max: number): (context: RequestContext) => void {
  let count = 0
  return (context) => {
    if (count >= max) {
      context.isPastLimit = true
      return
    }
    count++
    let isUnderWay = true
    context.leave = () => {
      if (isUnderWay) count--
      isUnderWay = false
    }
  }
}

/** Rejects a request that came when as many as may be were under way. */
export function requireRoom({ isPastLimit }: RequestContext): void {
  if (isPastLimit) throw new AppError('store_busy')
}

/** Has a request leave when it was answered, or when answering it failed. */
export const leaving =
  (handle: Handle): Handle =>
  async (request, context) => {
    try {
      return await handle(request, context)
    } finally {
      context.leave?.()
    }
  }

/** What ends a request being under way that goes on after its answer was begun. Whoever has it has to call it. */
export function takeLeave(context: RequestContext): () => void {
  const { leave } = context
  context.leave = undefined
  context.isStreamed = true
  return () => {
    leave?.()
    const { onStreamed } = context
    context.onStreamed = undefined
    onStreamed?.()
  }
}
