import type { Logger } from '../log.ts'
import { errorResponse } from './answers.ts'
import { pathOf } from './observe.ts'

/** The path of the metrics. */
const METRICS_PATH = '/metrics'

/** What the metrics application uses. */
export interface MetricsAppOptions {
  readonly metrics: { readonly contentType: string; text(): Promise<string> }
  readonly log: Logger
}

/** The application at the address of the metrics. It asks for no token. */
export function createMetricsApp({ metrics, log }: MetricsAppOptions): (request: Request) => Promise<Response> {
  return async ({ method, url }) => {
    const isKnown = pathOf(url) === METRICS_PATH && (method === 'GET' || method === 'HEAD')
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
