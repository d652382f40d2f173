// Tested in test/cli/metrics.test.ts.
import { AggregatorRegistry, collectDefaultMetrics, Registry } from 'prom-client'
import type { Health, Measurements } from '../domain/store.ts'
import { AppError } from '../error.ts'
import type { Logger } from '../log.ts'
import { errorResponse } from './answers.ts'
import { pathOf } from './log-and-metrics.ts'
import type { Histogram, RequestStatistics, WriteStatistics } from './statistics.ts'

/** The metrics of the library that have a meaning in this runtime: those of the process, and those of each thread. */
const PROCESS_METRICS = /^process_(?!heap)/
const THREAD_METRICS = /^nodejs_eventloop_lag_/

export interface MetricSources {
  /** The number of the thread: 0 for the main thread. */
  readonly thread: number
  readonly http: RequestStatistics
  readonly writes: WriteStatistics
  readonly store: Health
  readonly version: string
  /** When the certificate ends, in milliseconds since 1970-01-01 UTC; `undefined` for plain HTTP. */
  readonly certificateEndsMs?: (() => number | undefined) | undefined
  readonly nowMs: () => number
}

/** The metrics of a thread at one moment, as data that a message can have. */
export type ThreadMetrics = readonly object[]

/**
 * The application at the address of the metrics. It asks for no token, and answers in the text form of Prometheus
 * (https://prometheus.io/docs/instrumenting/exposition_formats/). The metrics of all threads are added up: those of its last
 * answer if a thread does not answer, so that no counter falls.
 */
export function createMetricsApp(
  sources: MetricSources,
  log: Logger,
  readOthers: () => Promise<readonly (ThreadMetrics | undefined)[]> = async () => [],
): (request: Request) => Promise<Response> {
  const { store, nowMs } = sources
  const readOwn = threadMetrics(sources)
  let latest: readonly ThreadMetrics[] = []
  const ofProcess = libraryMetrics(PROCESS_METRICS)
  const headers = {
    'content-type': ofProcess.contentType,
    'cache-control': 'no-store',
    'x-content-type-options': 'nosniff',
  }
  return async ({ method, url }) => {
    // The runtime dates every answer but those to HEAD.
    const date = new Date(nowMs()).toUTCString()
    const isKnown = pathOf(url) === '/metrics' && (method === 'GET' || method === 'HEAD')
    if (!isKnown) return errorResponse('path_unknown', '', { date })
    const measured = await store.measure(nowMs()).catch((error: unknown) => {
      const reason = String(error instanceof AppError ? (error.cause ?? error.kind) : error)
      log.warn({ reason }, 'the store could not be measured, so these metrics are left out')
      return {}
    })
    const others = await readOthers()
    latest = others.map((metrics, index) => metrics ?? latest[index] ?? [])
    const silentThreads = others.filter((metrics) => metrics === undefined).length
    const threads = [await readOwn(measured, silentThreads), ...latest]
    const sums = await AggregatorRegistry.aggregate(threads).metrics()
    return new Response(`${sums}\n${await ofProcess.metrics()}`, { headers: { ...headers, date } })
  }
}

/** Returns a function that reads the metrics of this thread. Ours count a request in 40 ns, the library's in 600 ns. */
export function threadMetrics(sources: MetricSources) {
  const ofLibrary = libraryMetrics(THREAD_METRICS, { thread: sources.thread })
  // The lag is first known after it was first read.
  void ofLibrary.getMetricsAsJSON()
  return async (measured: Partial<Measurements> = {}, silentThreads?: number): Promise<ThreadMetrics> => {
    const metrics = metricsOf(sources, measured, silentThreads)
    const own = Object.entries(metrics).map(([name, { type, aggregator = 'sum', values }]) => {
      const named = values.map(({ suffix = '', labels = {}, value }) => ({ metricName: name + suffix, labels, value }))
      return { name, help: HELP[name as MetricName], type, aggregator, values: named }
    })
    return [...own, ...(await ofLibrary.getMetricsAsJSON())]
  }
}

function libraryMetrics(pattern: RegExp, labels: object = {}): Registry {
  const register = new Registry()
  collectDefaultMetrics({ register, labels })
  for (const { name } of register.getMetricsAsArray()) if (!pattern.test(name)) register.removeSingleMetric(name)
  return register
}

const HELP = {
  plantstore_http_requests_total:
    'Requests that were answered, by operation and status. The operation of unknown paths is other.',
  plantstore_http_request_duration_seconds:
    'Time until the answer to a request, or until the first part of a list without a limit.',
  plantstore_http_requests_in_flight: 'Requests in flight. A list without a limit counts until it ends.',
  plantstore_http_response_body_bytes_total:
    'Bytes of the bodies of answers. A list without a limit counts part by part.',
  plantstore_http_requests_rejected_total: 'Requests that were answered with an error, by its kind.',
  plantstore_cache_hits_total: 'Reads of tokens and capped lists that a cache answered.',
  plantstore_cache_misses_total: 'Reads of tokens and capped lists that the store answered.',
  plantstore_write_queue_length: 'Writes that are not on disk yet.',
  plantstore_write_queue_age_seconds: 'How long the oldest of these writes has waited.',
  plantstore_writes_refused_total:
    'Writes that were refused because the queue was full or too slow, or another process kept the database locked.',
  plantstore_write_group_size: 'Writes in a group commit.',
  plantstore_sync_duration_seconds: 'Time of a group commit. It includes the sync, unless --durability is normal.',
  plantstore_database_size_bytes: 'Size of the database without its WAL.',
  plantstore_wal_size_bytes: 'Size of the WAL of the database. 0 for a database on a server.',
  plantstore_disk_size_bytes: 'Size of the disk of the database.',
  plantstore_disk_free_bytes: 'Free space on that disk.',
  plantstore_last_checkpoint_timestamp_seconds:
    'When a checkpoint last brought the whole WAL into the database, or when the server opened the database.',
  plantstore_last_backup_timestamp_seconds: 'When the latest backup began. 0 if there is none.',
  plantstore_last_backup_size_bytes: 'Size of the latest backup. 0 if there is none.',
  plantstore_tokens_expiring:
    'Tokens that expire within 7 days, without revoked and replaced ones. At most 1000 are counted.',
  plantstore_certificate_expires_in_seconds:
    'Time until the certificate of the server ends. Less than 0 after its end.',
  plantstore_jwt_keys_failed_total: 'Attempts to read the keys of the identity provider that failed.',
  plantstore_threads_silent: 'Threads that did not answer within a second. Their other metrics are old.',
  plantstore_build_info: 'The versions of the service and of Bun. The value is always 1.',
}
type MetricName = keyof typeof HELP

/** A metric at a scrape. Without values it is absent. */
interface Metric {
  readonly type: 'counter' | 'gauge' | 'histogram'
  /** What becomes of the values of several threads: their sum if it is left out. */
  readonly aggregator?: 'max' | 'first'
  readonly values: readonly Value[]
}

/** A value of a metric. The name of its series is that of the metric and `suffix`. */
interface Value {
  readonly suffix?: string
  readonly labels?: Readonly<Record<string, string | number>>
  readonly value: number
}

/** Our metrics now. No label holds a user, a token, an id or a client's path: all values of labels are known here. */
function metricsOf(
  { http, writes, store, version, certificateEndsMs, nowMs }: MetricSources,
  measured: Partial<Measurements>,
  silentThreads: number | undefined,
): Readonly<Record<MetricName, Metric>> {
  const operations = Object.entries(http.operations)
  const answered = operations.flatMap(([operation, { statuses }]) =>
    Object.entries(statuses).map(([status, value]) => ({ labels: { operation, status }, value })),
  )
  const durations = operations.map(([operation, { durationsS }]) => [durationsS, { operation }] as const)
  const { waitingWrites, longestWaitMs } = store.load()
  const endsMs = certificateEndsMs?.()
  const build = { labels: { version, bun_version: Bun.version }, value: 1 }
  return {
    plantstore_http_requests_total: { type: 'counter', values: answered },
    plantstore_http_request_duration_seconds: histogram(durations),
    plantstore_http_requests_in_flight: gauge(http.inFlight),
    plantstore_http_response_body_bytes_total: { type: 'counter', values: [{ value: http.bodyBytes }] },
    plantstore_http_requests_rejected_total: counter('reason', http.rejected),
    plantstore_cache_hits_total: counter('cache', http.caches.hits),
    plantstore_cache_misses_total: counter('cache', http.caches.misses),
    plantstore_write_queue_length: gauge(waitingWrites),
    plantstore_write_queue_age_seconds: { ...gauge(longestWaitMs / 1000), aggregator: 'max' },
    plantstore_writes_refused_total: counter('reason', writes.refusals),
    plantstore_write_group_size: histogram([[writes.groups]]),
    plantstore_sync_duration_seconds: histogram([[writes.syncsS]]),
    plantstore_database_size_bytes: gauge(measured.databaseBytes),
    plantstore_wal_size_bytes: gauge(measured.walBytes),
    plantstore_disk_size_bytes: gauge(measured.diskBytes),
    plantstore_disk_free_bytes: gauge(measured.diskFreeBytes),
    plantstore_last_checkpoint_timestamp_seconds: gauge(measured.checkpointedAtS),
    plantstore_last_backup_timestamp_seconds: gauge(measured.lastBackupAtS),
    plantstore_last_backup_size_bytes: gauge(measured.lastBackupBytes),
    plantstore_tokens_expiring: gauge(measured.expiringTokens),
    plantstore_certificate_expires_in_seconds: { ...gauge(endsMs && (endsMs - nowMs()) / 1000), aggregator: 'first' },
    plantstore_jwt_keys_failed_total: { ...gauge(http.keyFailures), type: 'counter' },
    plantstore_threads_silent: gauge(silentThreads),
    plantstore_build_info: { type: 'gauge', values: [build], aggregator: 'first' },
  }
}

const gauge = (value: number | undefined): Metric => ({
  type: 'gauge',
  values: value === undefined ? [] : [{ value }],
})

/** A counter with a value for each value of a label. */
const counter = (label: string, counts: Readonly<Record<string, number>>): Metric => ({
  type: 'counter',
  values: Object.entries(counts).map(([name, value]) => ({ labels: { [label]: name }, value })),
})

/** Histograms as one metric. Each bucket counts all values up to its bound. */
const histogram = (histograms: readonly (readonly [Histogram, labels?: Value['labels']])[]): Metric => ({
  type: 'histogram',
  values: histograms.flatMap(([{ bounds, counts, sum }, labels = {}]) => {
    let count = 0
    const buckets = counts.map((within, index) => {
      count += within
      return { suffix: '_bucket', labels: { ...labels, le: bounds[index] ?? '+Inf' }, value: count }
    })
    return [...buckets, { suffix: '_sum', labels, value: sum }, { suffix: '_count', labels, value: count }]
  }),
})
