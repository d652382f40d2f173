import { type Address, formatAddress } from '../../domain/address.ts'
import { countWrites, type StoreStatistics, type WriteStatistics } from '../../domain/statistics.ts'
import { createMetricsApp } from '../../http/metrics-app.ts'
import { listen } from '../../http/server.ts'
import { countRequests, type RequestStatistics } from '../../http/statistics.ts'
import type { Logger } from '../../log.ts'
import { VERSION } from '../../version.ts'

/** How long a scraper may be idle: Prometheus asks every 15 s or every minute. */
const METRICS_IDLE_TIMEOUT_MS = 120_000

/** What the service counts for its operators. */
export interface Statistics {
  readonly http: RequestStatistics
  readonly writes: WriteStatistics
}

/** Statistics that begin now. */
export const countStatistics = (): Statistics => ({ http: countRequests(), writes: countWrites() })

interface MetricsParts {
  readonly store: StoreStatistics
  readonly statistics: Statistics
  readonly log: Logger
}

/** A server of metrics. */
export interface MetricsServer {
  /** Ends it at once. It does not use the store any more. */
  stop(): void
}

/** Serves metrics, or rejects with `address_unavailable`. */
export async function serveMetrics(address: Address, { store, statistics, log }: MetricsParts): Promise<MetricsServer> {
  // Only a server with metrics waits for the library to load.
  const { createMetrics } = await import('../../metrics.ts')
  const metrics = createMetrics({ ...statistics, store, version: VERSION })
  const options = { idleTimeoutMs: METRICS_IDLE_TIMEOUT_MS, flag: '--metrics-listen', tls: undefined }
  const server = await listen(address, createMetricsApp({ metrics, log }), options)
  log.info({ metricsAddress: formatAddress(server.address, 'http') }, 'metrics are served')
  return { stop: server.kill }
}
