import { type Address, formatAddress } from '../../domain/address.ts'
import { countWrites, type WriteStatistics } from '../../domain/statistics.ts'
import type { Store } from '../../domain/store.ts'
import { createOps } from '../../http/metrics-app.ts'
import { listen } from '../../http/server.ts'
import { countRequests, type RequestStatistics } from '../../http/statistics.ts'
import type { Logger } from '../../log.ts'
import type { Sample } from '../../metrics.ts'
import { VERSION } from '../../version.ts'
import type { Io } from '../io.ts'

/** How often plants and tokens are counted, from the end of one count to the beginning of the next. */
const SAMPLE_PERIOD_MS = 5000
/** How long a scraper may be idle: Prometheus asks every 15 s or every minute. */
const OPS_IDLE_TIMEOUT_MS = 120_000

/** What is counted for those who operate the service. */
export interface Statistics {
  readonly http: RequestStatistics
  readonly writes: WriteStatistics
}

/** Statistics that begin now. */
export const countStatistics = (): Statistics => ({ http: countRequests(), writes: countWrites() })

interface OpsParts {
  readonly store: Pick<Store, 'load' | 'sizes' | 'count'>
  readonly statistics: Statistics
  readonly log: Logger
  readonly io: Pick<Io, 'nowMs'>
}

/** What those who operate the service are served. */
export interface RunningOps {
  /** Ends it at once. The store is not asked any more. */
  stop(): void
}

/** Serves metrics, or rejects with `address_unavailable`. */
export async function serveOps(address: Address, { store, statistics, log, io }: OpsParts): Promise<RunningOps> {
  // Who does without does not wait for the library to load.
  const { createMetrics } = await import('../../metrics.ts')
  const sampler = sampling(store, io.nowMs, log)
  const metrics = createMetrics({ ...statistics, store, sample: sampler.last, version: VERSION })
  const options = { idleTimeoutMs: OPS_IDLE_TIMEOUT_MS, flag: '--ops-listen', tls: undefined }
  const server = await listen(address, createOps({ metrics, log }), options)
  sampler.start()
  log.info({ opsAddress: formatAddress(server.address, 'http') }, 'metrics are served')
  return {
    stop() {
      sampler.stop()
      server.kill()
    },
  }
}

/** Counts what the store holds, once started, every `SAMPLE_PERIOD_MS`. */
function sampling(store: OpsParts['store'], nowMs: () => number, log: Logger) {
  let last: Sample | undefined
  let isStopped = false
  let timer: ReturnType<typeof setTimeout> | undefined
  const sample = async () => {
    try {
      last = { ...(await store.count(last)), atMs: nowMs() }
    } catch (error) {
      // A store that is being closed is not counted to the end.
      if (!isStopped) log.warn({ reason: String(error) }, 'plants and tokens could not be counted')
    }
    if (!isStopped) timer = setTimeout(sample, SAMPLE_PERIOD_MS)
  }
  return {
    last: () => last,
    start: () => void sample(),
    stop() {
      isStopped = true
      clearTimeout(timer)
    },
  }
}
