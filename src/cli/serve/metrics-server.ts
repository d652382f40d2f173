import { type Address, formatAddress } from '../../domain/address.ts'
import { countWrites, type StoreStatistics, type WriteStatistics } from '../../domain/statistics.ts'
import { createOps } from '../../http/metrics-app.ts'
import { listen } from '../../http/server.ts'
import { countRequests, type RequestStatistics } from '../../http/statistics.ts'
import type { Logger } from '../../log.ts'
import { VERSION } from '../../version.ts'

/** How long a scraper may be idle: Prometheus asks every 15 s or every minute. */
const OPS_IDLE_TIMEOUT_MS = 120_000

/** What the service counts for its operators. */
export interface Statistics {
  readonly http: RequestStatistics
  readonly writes: WriteStatistics
}

/** Statistics that begin now. */
export const countStatistics = (): Statistics => ({ http: countRequests(), writes: countWrites() })

interface OpsParts {
  readonly store: StoreStatistics
  readonly statistics: Statistics
  readonly log: Logger
}

/** A server of metrics. */
export interface RunningOps {
  /** Ends it at once. It does not use the store any more. */
  stop(): void
}

/** Serves metrics, or rejects with `address_unavailable`. */
export async function serveOps(address: Address, { store, statistics, log }: OpsParts): Promise<RunningOps> {
  // Only a server with metrics waits for the library to load.
  const { createMetrics } = await import('../../metrics.ts')
  const metrics = createMetrics({ ...statistics, store, version: VERSION })
  const options = { idleTimeoutMs: OPS_IDLE_TIMEOUT_MS, flag: '--ops-listen', tls: undefined }
  const server = await listen(address, createOps({ metrics, log }), options)
  log.info({ opsAddress: formatAddress(server.address, 'http') }, 'metrics are served')
  return { stop: server.kill }
}
