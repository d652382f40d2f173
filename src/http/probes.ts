import { Elysia } from 'elysia'
import { AppError } from '../domain/error.ts'
import type { Store } from '../domain/store.ts'
import { json } from './answers.ts'

/** How old the answer to `/readyz` may be, in milliseconds. All requests within this time share one check of the store. */
export const READINESS_MAX_AGE_MS = 1000

/** `isDraining` is true from the first signal on: the server is about to end. */
export interface Lifecycle {
  isDraining: boolean
}

const ok = () => json('{"status":"ok"}')

/** Whether the process is up, and whether it can serve. The probes need no token. */
export const probes = (store: Pick<Store, 'checkReady'>, lifecycle: Lifecycle, monotonicMs: () => number) => {
  const checkReady = shared(() => store.checkReady(), monotonicMs)
  const readyz = async () => {
    if (lifecycle.isDraining)
      throw new AppError('store_busy', {
        message: 'The server is shutting down: ask another one, or again when it has restarted.',
      })
    await checkReady()
    return ok()
  }
  return new Elysia({ name: 'probes' })
    .get('/healthz', ok, { detail: { operationId: 'health', hide: true } })
    .get('/readyz', readyz, { detail: { operationId: 'ready', hide: true } })
}

/** Checks at most once per `READINESS_MAX_AGE_MS`, so that no client can force an fsync with every request. */
function shared(ask: () => Promise<void>, monotonicMs: () => number): () => Promise<void> {
  let askedAtMs = Number.NEGATIVE_INFINITY
  let answer: Promise<void> | undefined
  return () => {
    if (answer === undefined || monotonicMs() - askedAtMs >= READINESS_MAX_AGE_MS) {
      askedAtMs = monotonicMs()
      answer = ask()
    }
    return answer
  }
}
