import type { Command } from '@commander-js/extra-typings'
import { OPTIONS, type OptionsOf } from '../../config.ts'
import { formatAddress } from '../../domain/address.ts'
import { AppError } from '../../domain/error.ts'
import type { Store } from '../../domain/store.ts'
import { collectTokenUses, type TokenUses } from '../../domain/token-use.ts'
import { createApp } from '../../http/app.ts'
import { listen, type RunningServer, schemeOf } from '../../http/server.ts'
import type { Tls } from '../../http/tls.ts'
import type { Logger } from '../../log.ts'
import { engineOf, openStore } from '../../store/open.ts'
import { VERSION } from '../../version.ts'
import { EXIT, exitCodeOf, type Io, type Signal } from '../io.ts'
import { manual } from '../manual.ts'
import { addDatabaseOptions, openOptionsOf } from '../with-store.ts'
import { countStatistics, type MetricsServer, type Statistics, serveMetrics } from './metrics-server.ts'
import { openLog } from './open-log.ts'
import { tlsOf, warnOfValidity } from './tls-options.ts'
import { welcome } from './welcome.ts'

/** How often the use of tokens is written. */
const TOKEN_USE_FLUSH_MS = 5000
/** After a failure of the store, time for its answers alone. */
const DRAIN_AFTER_FAILURE_MS = 500
/** After a failure of the store, the process ends by then, whatever has not ended in good order. */
const EXIT_AFTER_FAILURE_MS = 1000
/** Of --drain, what closing the store and the last log lines may take. */
const CLOSE_MS = 1000

/** The command with its options. */
const define = (program: Command) =>
  addDatabaseOptions(program.command('serve'))
    .description('Serves plants over HTTP.')
    .helpGroup('Server:')
    .addHelpText(
      'after',
      manual(
        ['serve --first-token', 'serve --listen unix:/run/plantstore.sock --database /var/lib/plantstore/plants.db'],
        {
          done: 'A signal ended the server in good order.',
          failed: 'The server cannot listen at its address.',
          storeUnusable: 'The database cannot be opened, or it has failed.',
        },
      ),
    )
    .addOption(OPTIONS.listen)
    .addOption(OPTIONS.metricsListen)
    .addOption(OPTIONS.durability)
    .addOption(OPTIONS.firstToken)
    .addOption(OPTIONS.noDocs)
    .addOption(OPTIONS.maxBody)
    .addOption(OPTIONS.listMax)
    .addOption(OPTIONS.rateLimit)
    .addOption(OPTIONS.rateBurst)
    .addOption(OPTIONS.maxInFlight)
    .addOption(OPTIONS.idleTimeout)
    .addOption(OPTIONS.tlsCert)
    .addOption(OPTIONS.tlsKey)
    .addOption(OPTIONS.drain)
    .addOption(OPTIONS.drainWait)
    .addOption(OPTIONS.logLevel)
    .addOption(OPTIONS.logFormat)
    .addOption(OPTIONS.accessLog)
    .addOption(OPTIONS.corsOrigin)
    .addOption(OPTIONS.publicUrl)

type Options = OptionsOf<ReturnType<typeof define>>

/** `serve`: serves until a signal comes, then ends in good order. */
export const serveCommand = (program: Command, io: Io, exit: (code: number) => void): void => {
  define(program).action(async (options: Options) => {
    if (options.drainWait >= options.drain && options.drainWait > 0) {
      throw new AppError('misused', { message: '--drain-wait (PLANTSTORE_DRAIN_WAIT) must be shorter than --drain.' })
    }
    if (options.rateBurst !== undefined && options.rateLimit === undefined) {
      throw new AppError('misused', { message: '--rate-burst (PLANTSTORE_RATE_BURST) needs --rate-limit.' })
    }
    exit(await serve({ ...options, tls: await tlsOf(options) }, io))
  })
}

interface WithTls {
  readonly tls: Tls | undefined
}

async function serve(options: Options & WithTls, io: Io): Promise<number> {
  const signalled = firstSignal(io)
  const { log, close: closeLog } = await openLog(options, io)
  const failed = Promise.withResolvers<void>()
  const statistics = options.metricsListen && countStatistics()
  let hasFailed = false
  const onFailure = (failure: AppError) => {
    hasFailed = true
    log.fatal({ reason: String(failure.cause) }, 'the store has failed: nothing more is written, and the process ends')
    setTimeout(() => io.exit(EXIT.storeUnusable), EXIT_AFTER_FAILURE_MS)
    failed.resolve()
  }
  const store = await openStore(options.database, onFailure, {
    ...openOptionsOf(options),
    durability: options.durability,
    writesInThread: true,
    keepsTrying: true,
    onCreated: (database) => log.info({ database }, 'created a new, empty store'),
    onEvent: ({ level, message, sizes }) => log[level](sizes, message),
    observer: statistics?.writes.observer,
  })
  const exposed = engineOf(options.database).exposedFiles()
  if (exposed.length > 0) log.warn(`the database is open to others: chmod 600 ${exposed.join(' ')}`)
  let metricsServer: MetricsServer | undefined
  try {
    metricsServer =
      options.metricsListen && statistics && (await serveMetrics(options.metricsListen, { store, statistics, log }))
    const servedCode = await serveStore(store, { signalled, failed: failed.promise }, statistics, log, options, io)
    metricsServer?.stop()
    await store.close()
    // The store can fail as late as this.
    const exitCode = hasFailed ? EXIT.storeUnusable : servedCode
    log.info({ exitCode }, 'ended')
    return exitCode
  } finally {
    metricsServer?.stop()
    await store.close()
    await closeLog()
  }
}

/** What ends a server: the first signal, or a store that must not be written to any more. */
interface Endings {
  readonly signalled: Promise<Signal>
  readonly failed: Promise<void>
}

async function serveStore(
  store: Store,
  endings: Endings,
  statistics: Statistics | undefined,
  log: Logger,
  options: Options & WithTls,
  io: Io,
): Promise<number> {
  const lifecycle = { isDraining: false }
  const uses = collectTokenUses((lastUsedAtMs) => store.touchTokens(lastUsedAtMs), io.nowMs)
  const app = createApp({
    store,
    recordUse: uses.recordUse,
    log,
    logsRequests: options.accessLog === 'on',
    statistics: statistics?.http,
    lifecycle,
    usesTls: options.tls !== undefined,
    maxBodyBytes: options.maxBody,
    listMax: options.listMax,
    rateLimit: options.rateLimit && { ...options.rateLimit, burst: options.rateBurst ?? 0 },
    maxInFlight: options.maxInFlight,
    servesDocs: options.docs,
    corsOrigins: options.corsOrigin ?? [],
    publicUrl: options.publicUrl,
    nowMs: io.nowMs,
    monotonicMs: io.monotonicMs,
  })
  const server = await listen(options.listen, app, {
    idleTimeoutMs: options.idleTimeout,
    flag: '--listen',
    tls: options.tls,
  })
  const flushing = setInterval(() => void flushUses(uses, log), TOKEN_USE_FLUSH_MS)
  const address = formatAddress(server.address, schemeOf(options))
  log.info({ address, database: engineOf(options.database).location, version: VERSION }, 'listening')
  if (options.tls !== undefined) warnOfValidity(options.tls, io.nowMs(), log)
  await Promise.race([endings.failed, endings.signalled, welcome(lifecycle, store, server.address, log, options, io)])

  const failed = endings.failed.then(() => EXIT.storeUnusable)
  const signalled = endings.signalled.then(async (signal) => {
    log.info({ signal }, 'ending')
    lifecycle.isDraining = true
    clearInterval(flushing)
    await drain(server, { drainMs: options.drain, waitMs: options.drainWait }, log)
    await flushUses(uses, log)
    return EXIT.done
  })
  // A store can also fail while the server drains, by the last write of all.
  const exitCode = await Promise.race([failed, signalled.then((code) => Promise.race([failed, code]))])
  if (exitCode === EXIT.done) return exitCode
  lifecycle.isDraining = true
  clearInterval(flushing)
  await drain(server, { drainMs: DRAIN_AFTER_FAILURE_MS, waitMs: 0 }, log)
  return exitCode
}

/** The first signal. A second one ends the process at once. */
function firstSignal(io: Io): Promise<Signal> {
  const { promise, resolve } = Promise.withResolvers<Signal>()
  let isSecond = false
  io.onSignal((signal) => {
    if (isSecond) io.exit(exitCodeOf(signal))
    isSecond = true
    resolve(signal)
  })
  return promise
}

async function flushUses(uses: TokenUses, log: Logger): Promise<void> {
  try {
    await uses.flush()
  } catch (error) {
    log.warn(
      // A store that has failed gives no cause any more: it was told.
      { reason: String(error instanceof AppError ? (error.cause ?? error.kind) : error) },
      'the last use of tokens could not be written',
    )
  }
}

interface DrainLimits {
  readonly drainMs: number
  /** How long, of `drainMs`, new connections are still taken: until balancers have noticed. */
  readonly waitMs: number
}

/** Lets what is under way come to its end, and cuts what is not there by then. */
async function drain(server: RunningServer, { drainMs, waitMs }: DrainLimits, log: Logger): Promise<void> {
  // The runtime accepts connections as long as more arrive, and lets no timer run meanwhile. While the server drains, each
  // answer closes its connection and clients open new ones. So without a wait no timer comes before the listener is closed.
  if (waitMs > 0) await Bun.sleep(waitMs)
  const closeMs = Math.min(CLOSE_MS, drainMs / 4)
  const leftMs = Math.max(0, drainMs - waitMs - closeMs)
  const isOver = await Promise.race([server.stop().then(() => true), Bun.sleep(leftMs).then(() => false)])
  const cut = isOver ? 0 : server.kill()
  if (cut > 0) log.warn({ requests: cut }, 'requests were cut: they took longer than --drain')
}
