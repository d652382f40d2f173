import { Elysia } from 'elysia'
import { AppError } from '../error.ts'
import { respond } from './answers.ts'
import type { AppOptions } from './options.ts'

/** How old the answer to `/readyz` may be, in milliseconds. All requests within this time share one check of the store. */
const READINESS_MAX_AGE_MS = 1000

const ok = () => respond('{"status":"ok"}')

/** Whether the process is up, and whether it can serve. The probes need no token. */
export const probes = ({ store, draining, readyAtMs, nowMs }: AppOptions) => {
  let checkedAtMs = Number.NEGATIVE_INFINITY
  let checked: Promise<void> | undefined
  // Threads have different monotonic clocks, so they share the time of day, which may jump either way.
  const isRecent = (ms = 0) => Math.abs(nowMs() - ms) < READINESS_MAX_AGE_MS
  const check = async (startMs: number) => {
    await store.checkReady()
    readyAtMs[0] = startMs
  }
  const readyz = async () => {
    if (draining.signal.aborted)
      throw new AppError('store_busy', {
        message: 'The server is shutting down: ask another one, or again when it has restarted.',
      })
    // No client can force an fsync with every request.
    if (isRecent(readyAtMs[0])) return ok()
    if (!isRecent(checkedAtMs)) {
      checkedAtMs = nowMs()
      checked = check(checkedAtMs)
    }
    await checked
    return ok()
  }
  return new Elysia({ name: 'probes' })
    .get('/healthz', ok, { detail: { operationId: 'health', hide: true } })
    .get('/readyz', readyz, { detail: { operationId: 'ready', hide: true } })
}
