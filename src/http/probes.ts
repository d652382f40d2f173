import { Elysia } from 'elysia'
import { AppError } from '../domain/error.ts'
import type { Logger } from '../log.ts'
import { errorResponse, json } from './answers.ts'
import type { AppOptions } from './app.ts'
import { pathOf } from './observe.ts'

/** How old the answer to `/readyz` may be, in milliseconds. All requests within this time share one check of the store. */
const READINESS_MAX_AGE_MS = 1000

/** `isDraining` is true from the first signal on: the server is about to end. */
export interface Lifecycle {
  isDraining: boolean
}

const ok = () => json('{"status":"ok"}')

/** Whether the process is up, and whether it can serve. The probes need no token. */
export const probes = ({ store, lifecycle, monotonicMs }: Pick<AppOptions, 'store' | 'lifecycle' | 'monotonicMs'>) => {
  let checkedAtMs = Number.NEGATIVE_INFINITY
  let checked: Promise<void> | undefined
  const readyz = async () => {
    if (lifecycle.isDraining)
      throw new AppError('store_busy', {
        message: 'The server is shutting down: ask another one, or again when it has restarted.',
      })
    // No client can force an fsync with every request.
    if (checked === undefined || monotonicMs() - checkedAtMs >= READINESS_MAX_AGE_MS) {
      checkedAtMs = monotonicMs()
      checked = store.checkReady()
    }
    await checked
    return ok()
  }
  return new Elysia({ name: 'probes' })
    .get('/healthz', ok, { detail: { operationId: 'health', hide: true } })
    .get('/readyz', readyz, { detail: { operationId: 'ready', hide: true } })
}

interface MetricsAppOptions {
  readonly metrics: { readonly contentType: string; text(): Promise<string> }
  readonly log: Logger
}

/** The application at the address of the metrics. It asks for no token. */
export function createMetricsApp({ metrics, log }: MetricsAppOptions): (request: Request) => Promise<Response> {
  return async ({ method, url }) => {
    const isKnown = pathOf(url) === '/metrics' && (method === 'GET' || method === 'HEAD')
    if (!isKnown) return errorResponse('path_unknown')
    const headers = {
      'content-type': metrics.contentType,
      'cache-control': 'no-store',
      'x-content-type-options': 'nosniff',
    }
    try {
      return new Response(await metrics.text(), { headers })
    } catch (error) {
      log.error({ err: error }, 'the metrics could not be read')
      return errorResponse('bug', 'The metrics could not be read: see the log.')
    }
  }
}
