// Tested in test/cli/transcripts/serve-options.txt.
import { availableParallelism, platform } from 'node:os'
import type { Command } from '@commander-js/extra-typings'
import { type Address, areSame } from '../../address.ts'
import { SETTINGS, type Settings } from '../../config.ts'
import { isPostgresUrl } from '../../database-url.ts'
import { misused } from '../../error.ts'
import { answerAfterBody, hasRequestBody } from '../../http/body.ts'
import type { MetricSources, ThreadMetrics } from '../../http/metrics.ts'
import { RequestStatistics, WriteStatistics } from '../../http/statistics.ts'
import { createLogger, formatFor, logToStdout } from '../../log.ts'
import { openStore } from '../../store/open.ts'
import { VERSION } from '../../version.ts'
import { defineCommand, namesOf, openOptionsOf, tellRaise } from '../command.ts'
import { Ended, EXIT, type Io } from '../io.ts'
import type { ServeOptions } from './http-service.ts'
import { listen } from './server.ts'
import type { ServerContext } from './server-context.ts'
import { runService } from './service.ts'
import { watchShutdown } from './shutdown.ts'
import { prepareThreads } from './threads.ts'

/** How long the server waits for a reader of the last lines of the log. */
const LOG_FLUSH_MS = 500
/** How long a scraper may be idle: Prometheus asks every 15 s or every minute. */
const METRICS_IDLE_TIMEOUT_MS = 120_000

/** `serve`: serves until a signal comes, then ends in good order. */
export const serveCommand = (program: Command, io: Io) =>
  defineCommand(program, 'serve', {
    does: 'Serves plants over HTTP.',
    examples: ['serve --first-token', 'serve --listen unix:/run/plantstore.sock --database plants.db'],
    exits: {
      done: 'A signal ended the server in good order.',
      failed: 'The server cannot listen at its address.',
      storeUnusable: 'The database cannot be opened, or it has failed, or a thread has failed.',
    },
    options: namesOf(SETTINGS),
  }).action(async (options) => serve(await completeOptions(options, io), io))

/** Reads the certificate and the key. Rejects with `misused` if options do not fit together, or a server cannot use the files. */
async function completeOptions(options: Settings, io: Io): Promise<ServeOptions> {
  const { drain, drainWait, tlsCert: certPath, tlsKey: keyPath } = options
  const { jwtIssuer, jwtAudience, jwtKeys, jwtDefaultScope, jwtClientId, jwtRequestParam } = options
  if (drainWait >= drain && drainWait > 0)
    throw misused('--drain-wait (PLANTSTORE_DRAIN_WAIT) must be shorter than --drain.')
  if (options.metricsListen !== undefined && areSame(options.listen, options.metricsListen))
    throw misused('--listen and --metrics-listen (PLANTSTORE_METRICS_LISTEN) need an address each: change one of them.')
  const isJwtSet = (jwtIssuer ?? jwtAudience ?? jwtKeys ?? jwtDefaultScope ?? jwtClientId) !== undefined
  if (isJwtSet && (jwtIssuer === undefined || jwtAudience === undefined))
    throw misused('JWTs need both --jwt-issuer (PLANTSTORE_JWT_ISSUER) and --jwt-audience (PLANTSTORE_JWT_AUDIENCE).')
  if (jwtClientId !== undefined && jwtKeys !== undefined)
    throw misused('--jwt-client-id needs the metadata of the provider: leave --jwt-keys (PLANTSTORE_JWT_KEYS) out.')
  if (jwtClientId !== undefined && !options.page)
    throw misused('--jwt-client-id is for the page: leave --no-page (PLANTSTORE_NO_PAGE) out.')
  if (jwtClientId === undefined && jwtRequestParam !== undefined)
    throw misused('--jwt-request-param (PLANTSTORE_JWT_REQUEST_PARAM) needs --jwt-client-id.')
  const complete = { ...options, threads: threadsFor(options), hasColours: coloursFor(options, io) }
  if (certPath === undefined && keyPath === undefined) return { ...complete, tls: undefined }
  if (certPath === undefined || keyPath === undefined)
    throw misused(
      '--tls-cert (PLANTSTORE_TLS_CERT) and --tls-key (PLANTSTORE_TLS_KEY) go together: set both or neither.',
    )
  // Only a server with TLS waits for its code to load.
  const { readTls } = await import('./tls.ts')
  return { ...complete, tls: readTls(certPath, keyPath) }
}

/** How many threads answer if no option says it, at most. One core is left for the thread that writes. */
const DEFAULT_THREADS_MAX = 8

/** How many threads answer. Throws `misused` if the options want several threads where only one is possible. */
function threadsFor({ threads, listen, rateLimit, database }: Settings): number {
  const reasons = {
    'a unix socket has one': 'socketPath' in listen,
    '--rate-limit counts in one': rateLimit !== undefined,
    'servers on PostgreSQL have one, so start several servers': isPostgresUrl(database),
    'only Linux lets several listen at an address': platform() !== 'linux',
  }
  const [reason] = Object.entries(reasons).find(([, isSo]) => isSo) ?? []
  if (reason === undefined) return threads ?? Math.max(1, Math.min(DEFAULT_THREADS_MAX, availableParallelism() - 1))
  if (threads === undefined || threads === 1) return 1
  throw misused(`--threads (PLANTSTORE_THREADS) must be 1: ${reason}.`)
}

/** Whether lines for people have colours; `undefined` for JSON. `NO_COLOR` turns colours off (https://no-color.org). */
function coloursFor({ logFormat }: Settings, { printsToTerminal, env }: Io): boolean | undefined {
  if ((logFormat ?? (printsToTerminal ? 'pretty' : 'json')) === 'json') return undefined
  return printsToTerminal && env.TERM !== 'dumb' && !env.NO_COLOR
}

async function serve(options: ServeOptions, io: Io): Promise<void> {
  const output = logToStdout()
  const log = createLogger(options.logLevel, output.destination, await formatFor(options.hasColours))
  const shutdown = watchShutdown(log, io)
  const writeLines = (lines: string) => void output.destination.write(lines)
  const threads = prepareThreads(options.threads - 1, shutdown, writeLines)
  try {
    await serveStore({ options, shutdown, log, io, threads })
    // The store can fail as late as while it is closed.
    const exitCode = shutdown.hasFailed ? EXIT.storeUnusable : EXIT.done
    log.info({ exitCode }, 'ended')
    if (exitCode !== EXIT.done) throw new Ended(exitCode)
  } finally {
    // SIGHUP must not write to a stream that is closed.
    log.level = 'silent'
    await output.close(LOG_FLUSH_MS)
  }
}

/** Opens the store, serves it and its metrics, and closes it. */
async function serveStore(context: ServerContext): Promise<void> {
  const { options, shutdown, log, io, threads } = context
  const statistics = options.metricsListen && { http: new RequestStatistics(), writes: new WriteStatistics() }
  const store = await openStore(options.database, ({ cause }) => shutdown.onFailure(String(cause)), {
    ...openOptionsOf(options),
    quotaPlants: options.quotaPlants,
    isServer: true,
    threads: options.threads,
    onCreated: (location) => log.info({ database: location }, 'created a new, empty store'),
    onRaised: tellRaise(log),
    onEvent: ({ level, message, sizes }) => log[level](sizes, message),
    observer: statistics?.writes,
  })
  try {
    const certificateEndsMs = () => options.tls?.validToMs
    const facts = { thread: 0, store, version: VERSION, certificateEndsMs, nowMs: io.nowMs }
    using _metrics = statistics && (await serveMetrics(options.metricsListen, { ...statistics, ...facts }, context))
    await runService(context, store, statistics?.http)
  } finally {
    threads.end()
    await store.close()
  }
}

/** Serves metrics until it is disposed of. Rejects with `address_unavailable`. */
async function serveMetrics(
  address: Address,
  sources: MetricSources,
  { log, threads }: ServerContext,
): Promise<Disposable> {
  // Only a server with metrics waits for the library to load.
  const { createMetricsApp } = await import('../../http/metrics.ts')
  const readOthers = () => threads.ask({ call: 'readMetrics' }) as Promise<(ThreadMetrics | undefined)[]>
  const answer = createMetricsApp(sources, log, readOthers)
  const handle = async (request: Request) => {
    const response = await answer(request)
    if (!hasRequestBody(request)) return response
    // Nothing drains this listener: it answers until it is disposed of.
    return answerAfterBody(request, response, METRICS_IDLE_TIMEOUT_MS, new AbortController())
  }
  const server = await listen(address, handle, {
    idleTimeoutMs: METRICS_IDLE_TIMEOUT_MS,
    flag: '--metrics-listen',
    // /metrics asks for no token, so only the user of the process may connect.
    socketMode: 0o600,
    tls: undefined,
  })
  log.info({ metricsAddress: server.url }, 'metrics are served')
  return { [Symbol.dispose]: server.kill }
}
