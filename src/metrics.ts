import { collectDefaultMetrics, Gauge, Registry } from 'prom-client'
import type { StoreStatistics, WriteStatistics } from './domain/statistics.ts'
import type { RequestStatistics } from './http/statistics.ts'
import { counter, gauge, histogram } from './metric.ts'

/** The statistics that become metrics. */
export interface MetricSources {
  readonly http: RequestStatistics
  readonly writes: WriteStatistics
  readonly store: StoreStatistics
  readonly version: string
}

/** All metrics in the text form of Prometheus (https://prometheus.io/docs/instrumenting/exposition_formats/). */
export interface Metrics {
  readonly contentType: string
  /** Their values now. It copies statistics and counts nothing. */
  text(): Promise<string>
}

/** The process metrics of the library that have a meaning in this runtime. The others are always 0. */
const PROCESS_METRICS = [
  'process_cpu_user_seconds_total',
  'process_cpu_system_seconds_total',
  'process_cpu_seconds_total',
  'process_start_time_seconds',
  'process_resident_memory_bytes',
  'process_virtual_memory_bytes',
  'process_open_fds',
  'process_max_fds',
  // Reading this one fills those below.
  'nodejs_eventloop_lag_seconds',
  'nodejs_eventloop_lag_mean_seconds',
  'nodejs_eventloop_lag_p50_seconds',
  'nodejs_eventloop_lag_p99_seconds',
  'nodejs_eventloop_lag_max_seconds',
]

/** Makes metrics of statistics. No label holds a user, a token, an id or a client's path: all values of labels are known here. */
export function createMetrics(sources: MetricSources): Metrics {
  const registry = new Registry()
  registerRequests(registry, sources.http)
  registerWrites(registry, sources.writes, sources.store)
  registerSizes(registry, sources.store)
  registerProcess(registry)
  new Gauge({
    name: 'plantstore_build_info',
    help: 'The versions of the service and of Bun. The value is always 1.',
    labelNames: ['version', 'bun_version'],
    registers: [registry],
  }).set({ version: sources.version, bun_version: Bun.version }, 1)
  return { contentType: registry.contentType, text: () => registry.metrics() }
}

function registerRequests(registry: Registry, http: RequestStatistics): void {
  const operations = () => Object.entries(http.operations)
  counter(registry, {
    name: 'plantstore_http_requests_total',
    help: 'Requests that were answered, by operation and status. The operation of unknown paths is other.',
    labelNames: ['operation', 'status'],
    values: () =>
      operations().flatMap(([operation, { statuses }]) =>
        statuses.flatMap((count, status) => (count === 0 ? [] : [[{ operation, status }, count] as const])),
      ),
  })
  histogram(registry, {
    name: 'plantstore_http_request_duration_seconds',
    help: 'Time until the answer to a request, or until the first part of a list without a limit.',
    histograms: () => operations().map(([operation, { durationsS }]) => [{ operation }, durationsS]),
  })
  gauge(registry, {
    name: 'plantstore_http_requests_in_flight',
    help: 'Requests in flight. A list without a limit counts until it ends.',
    value: http.inFlight,
  })
  counter(registry, {
    name: 'plantstore_http_requests_rejected_total',
    help: 'Requests that were answered with an error, by its kind. The kind in_flight_limit is --max-in-flight.',
    labelNames: ['reason'],
    values: () => Object.entries(http.rejected).map(([reason, count]) => [{ reason }, count]),
  })
  const caches = Object.entries(http.caches)
  counter(registry, {
    name: 'plantstore_cache_hits_total',
    help: 'Reads of tokens and capped lists that a cache answered.',
    labelNames: ['cache'],
    values: () => caches.map(([cache, { hits }]) => [{ cache }, hits]),
  })
  counter(registry, {
    name: 'plantstore_cache_misses_total',
    help: 'Reads of tokens and capped lists that the store answered.',
    labelNames: ['cache'],
    values: () => caches.map(([cache, { misses }]) => [{ cache }, misses]),
  })
}

function registerWrites(registry: Registry, writes: WriteStatistics, store: StoreStatistics): void {
  gauge(registry, {
    name: 'plantstore_write_queue_length',
    help: 'Writes that are not on disk yet.',
    value: () => store.load().waitingWrites,
  })
  gauge(registry, {
    name: 'plantstore_write_queue_age_seconds',
    help: 'How long the oldest of these writes has waited.',
    value: () => store.load().longestWaitMs / 1000,
  })
  counter(registry, {
    name: 'plantstore_writes_refused_total',
    help: 'Writes that were refused because too many waited or another process kept the database locked.',
    labelNames: ['reason'],
    values: () => Object.entries(writes.refusals).map(([reason, count]) => [{ reason }, count]),
  })
  histogram(registry, {
    name: 'plantstore_write_group_size',
    help: 'Writes in a group commit.',
    histograms: () => [[{}, writes.groups]],
  })
  histogram(registry, {
    name: 'plantstore_sync_duration_seconds',
    help: 'Time of a group commit. It includes the sync, unless --durability is normal.',
    histograms: () => [[{}, writes.syncsS]],
  })
}

function registerSizes(registry: Registry, store: StoreStatistics): void {
  gauge(registry, {
    name: 'plantstore_database_size_bytes',
    help: 'Size of the database without its WAL.',
    value: async () => (await store.sizes()).databaseBytes,
  })
  gauge(registry, {
    name: 'plantstore_wal_size_bytes',
    help: 'Size of the WAL of the database. 0 for a database on a server.',
    value: async () => (await store.sizes()).walBytes,
  })
}

/** Registers the metrics of the process that this runtime knows. */
function registerProcess(registry: Registry): void {
  const all = new Registry()
  collectDefaultMetrics({ register: all })
  for (const name of PROCESS_METRICS) {
    const metric = all.getSingleMetric(name)
    if (metric === undefined) throw new TypeError(`prom-client has no ${name}`)
    registry.registerMetric(metric)
  }
}
