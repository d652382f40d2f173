import { collectDefaultMetrics, type Metric, Registry } from 'prom-client'
import { AppError } from '../domain/error.ts'
import type { Measurements, Store } from '../domain/store.ts'
import type { Logger } from '../log.ts'
import { errorResponse } from './answers.ts'
import { pathOf } from './observe.ts'
import type { Histogram, RequestStatistics, WriteStatistics } from './statistics.ts'

/** Our metrics, and those of the library that have a meaning in this runtime. */
const METRICS = /^plantstore_|^process_(?!heap)|^nodejs_eventloop_lag_/

/** The statistics that become metrics. */
export interface MetricSources {
  readonly http: RequestStatistics
  readonly writes: WriteStatistics
  readonly store: Pick<Store, 'load' | 'measure'>
  readonly version: string
  /** When the certificate ends, in milliseconds since 1970-01-01 UTC; `undefined` for plain HTTP. */
  readonly certificateEndsMs: number | undefined
  readonly nowMs: () => number
}

/**
 * The application at the address of the metrics. It asks for no token, and answers in the text form of Prometheus
 * (https://prometheus.io/docs/instrumenting/exposition_formats/).
 */
export function createMetricsApp(sources: MetricSources, log: Logger): (request: Request) => Promise<Response> {
  const { store, certificateEndsMs, nowMs } = sources
  let measured: Measured = {}
  const registry = createRegistry(sources, () => measured)
  const headers = {
    'content-type': registry.contentType,
    'cache-control': 'no-store',
    'x-content-type-options': 'nosniff',
  }
  return async ({ method, url }) => {
    // The runtime dates every answer but those to HEAD.
    const date = new Date(nowMs()).toUTCString()
    const isKnown = pathOf(url) === '/metrics' && (method === 'GET' || method === 'HEAD')
    if (!isKnown) return errorResponse('path_unknown', '', { date })
    const ofStore = await store.measure(nowMs()).catch((error: unknown) => {
      const reason = String(error instanceof AppError ? (error.cause ?? error.kind) : error)
      log.warn({ reason }, 'the store could not be measured, so these metrics are left out')
      return {}
    })
    measured = { ...ofStore, certificateLeftS: certificateEndsMs && (certificateEndsMs - nowMs()) / 1000 }
    return new Response(await registry.metrics(), { headers: { ...headers, date } })
  }
}

/** Makes metrics of statistics. No label holds a user, a token, an id or a client's path: all values of labels are known here. */
function createRegistry(sources: MetricSources, measured: () => Measured): Registry {
  const registry = new Registry()
  registerRequests(registry, sources)
  registerStore(registry, sources)
  for (const [key, [name, help]] of Object.entries(MEASURED)) {
    // A value that is not known is absent.
    const values = () => [measured()[key as keyof Measured] ?? []].flat().map((value) => ({ value }))
    register(registry, 'gauge', { name, help, values })
  }
  register(registry, 'gauge', {
    name: 'plantstore_build_info',
    help: 'The versions of the service and of Bun. The value is always 1.',
    values: () => [{ labels: { version: sources.version, bun_version: Bun.version }, value: 1 }],
  })
  collectDefaultMetrics({ register: registry })
  for (const { name } of registry.getMetricsAsArray()) if (!METRICS.test(name)) registry.removeSingleMetric(name)
  return registry
}

function registerRequests(registry: Registry, { http }: MetricSources): void {
  const operations = () => Object.entries(http.operations)
  register(registry, 'counter', {
    name: 'plantstore_http_requests_total',
    help: 'Requests that were answered, by operation and status. The operation of unknown paths is other.',
    values: () =>
      operations().flatMap(([operation, { statuses }]) =>
        statuses.flatMap((value, status) => ({ labels: { operation, status }, value })),
      ),
  })
  register(registry, 'histogram', {
    name: 'plantstore_http_request_duration_seconds',
    help: 'Time until the answer to a request, or until the first part of a list without a limit.',
    values: (name) => operations().flatMap(([operation, { durationsS }]) => histogram(name, durationsS, { operation })),
  })
  register(registry, 'gauge', {
    name: 'plantstore_http_requests_in_flight',
    help: 'Requests in flight. A list without a limit counts until it ends.',
    values: () => [{ value: http.inFlight }],
  })
  register(registry, 'counter', {
    name: 'plantstore_http_response_body_bytes_total',
    help: 'Bytes of the bodies of answers. A list without a limit counts part by part.',
    values: () => [{ value: http.bodyBytes }],
  })
  register(registry, 'counter', {
    name: 'plantstore_http_requests_rejected_total',
    help: 'Requests that were answered with an error, by its kind.',
    values: () => Object.entries(http.rejected).map(([reason, value]) => ({ labels: { reason }, value })),
  })
  const sources = { hits: 'a cache', misses: 'the store' }
  for (const outcome of ['hits', 'misses'] as const) {
    register(registry, 'counter', {
      name: `plantstore_cache_${outcome}_total`,
      help: `Reads of tokens and capped lists that ${sources[outcome]} answered.`,
      values: () =>
        Object.entries(http.caches).map(([cache, counts]) => ({ labels: { cache }, value: counts[outcome] })),
    })
  }
}

function registerStore(registry: Registry, { writes, store }: MetricSources): void {
  register(registry, 'gauge', {
    name: 'plantstore_write_queue_length',
    help: 'Writes that are not on disk yet.',
    values: () => [{ value: store.load().waitingWrites }],
  })
  register(registry, 'gauge', {
    name: 'plantstore_write_queue_age_seconds',
    help: 'How long the oldest of these writes has waited.',
    values: () => [{ value: store.load().longestWaitMs / 1000 }],
  })
  register(registry, 'counter', {
    name: 'plantstore_writes_refused_total',
    help: 'Writes that were refused because the queue was full or too slow, or another process kept the database locked.',
    values: () => Object.entries(writes.refusals).map(([reason, value]) => ({ labels: { reason }, value })),
  })
  register(registry, 'histogram', {
    name: 'plantstore_write_group_size',
    help: 'Writes in a group commit.',
    values: (name) => histogram(name, writes.groups),
  })
  register(registry, 'histogram', {
    name: 'plantstore_sync_duration_seconds',
    help: 'Time of a group commit. It includes the sync, unless --durability is normal.',
    values: (name) => histogram(name, writes.syncsS),
  })
}

/** What is measured at each scrape: the store, and the seconds until the certificate ends. */
type Measured = Partial<Measurements> & { readonly certificateLeftS?: number | undefined }

/** The metrics of what is measured: their names and help. */
const MEASURED: Readonly<Record<keyof Measured, readonly [name: string, help: string]>> = {
  databaseBytes: ['plantstore_database_size_bytes', 'Size of the database without its WAL.'],
  walBytes: ['plantstore_wal_size_bytes', 'Size of the WAL of the database. 0 for a database on a server.'],
  diskBytes: ['plantstore_disk_size_bytes', 'Size of the disk of the database.'],
  diskFreeBytes: ['plantstore_disk_free_bytes', 'Free space on that disk.'],
  checkpointedAtS: [
    'plantstore_last_checkpoint_timestamp_seconds',
    'When a checkpoint last brought the whole WAL into the database, or when the server opened the database.',
  ],
  lastBackupAtS: ['plantstore_last_backup_timestamp_seconds', 'When the latest backup began. 0 if there is none.'],
  lastBackupBytes: ['plantstore_last_backup_size_bytes', 'Size of the latest backup. 0 if there is none.'],
  expiringTokens: [
    'plantstore_tokens_expiring',
    'Tokens that expire within 7 days, without revoked and replaced ones. At most 1000 are counted.',
  ],
  certificateLeftS: [
    'plantstore_certificate_expires_in_seconds',
    'Time until the certificate of the server ends. Less than 0 after its end.',
  ],
}

interface Source {
  readonly name: string
  readonly help: string
  readonly values: (name: string) => readonly Value[] | Promise<readonly Value[]>
}

/** A value of a metric. `metricName` is the name of its series, if it is not that of the metric. */
interface Value {
  readonly metricName?: string
  readonly labels?: Readonly<Record<string, string | number>>
  readonly value: number
}

/**
 * Registers a metric whose values are read at each scrape. The library's own metrics count by themselves: for each request, that
 * takes 600 ns, and our counting takes 40 ns.
 */
function register(registry: Registry, type: 'counter' | 'gauge' | 'histogram', { name, help, values }: Source): void {
  const get = async () => ({ name, help, type, values: await values(name) })
  // A registry uses only these properties of a metric. Its type names the library's own classes.
  registry.registerMetric({ name, get } as unknown as Metric)
}

/** The values of a histogram. Each bucket counts all values up to its bound. */
function histogram(name: string, { bounds, counts, sum }: Histogram, labels: Value['labels'] = {}): Value[] {
  let count = 0
  const values = counts.map((within, index) => {
    count += within
    return { metricName: `${name}_bucket`, labels: { ...labels, le: bounds[index] ?? '+Inf' }, value: count }
  })
  return [
    ...values,
    { metricName: `${name}_sum`, labels, value: sum },
    { metricName: `${name}_count`, labels, value: count },
  ]
}
