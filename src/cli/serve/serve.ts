import type { Command } from '@commander-js/extra-typings'
import { AppError } from '../../domain/error.ts'
import type { Logger } from '../../log.ts'
import { engineOf, openStore } from '../../store/open.ts'
import { openOptionsOf } from '../command.ts'
import { Ended, EXIT, exitCodeOf, type Io, type Signal } from '../io.ts'
import { countStatistics, type MetricsServer, type Statistics, serveMetrics } from './metrics-server.ts'
import { openLog } from './open-log.ts'
import { defineServe, type ServeOptions } from './options.ts'
import { runService } from './service.ts'
import { tlsOf } from './tls-options.ts'

/** After a failure of the store, the process ends within this time, also if something has not ended in good order. */
const EXIT_AFTER_FAILURE_MS = 1000

/** `serve`: serves until a signal comes, then ends in good order. */
export const serveCommand = (program: Command, io: Io): void => {
  defineServe(program).action(async (options) => {
    if (options.drainWait >= options.drain && options.drainWait > 0) {
      throw new AppError('misused', { message: '--drain-wait (PLANTSTORE_DRAIN_WAIT) must be shorter than --drain.' })
    }
    if (options.rateBurst !== undefined && options.rateLimit === undefined) {
      throw new AppError('misused', { message: '--rate-burst (PLANTSTORE_RATE_BURST) needs --rate-limit.' })
    }
    const exitCode = await serve({ ...options, tls: await tlsOf(options) }, io)
    if (exitCode !== EXIT.done) throw new Ended(exitCode)
  })
}

async function serve(options: ServeOptions, io: Io): Promise<number> {
  const signalled = firstSignal(io)
  const { log, close: closeLog } = await openLog(options, io)
  const failure = watchForFailure(log, io)
  const { metricsListen } = options
  const statistics = metricsListen && countStatistics()
  const store = await openServedStore(options, failure.onFailure, statistics, log)
  let metricsServer: MetricsServer | undefined
  try {
    metricsServer = metricsListen && statistics && (await serveMetrics(metricsListen, { store, statistics, log }))
    const parts = { options, store, statistics, log, io }
    const servedCode = await runService(parts, { signalled, failed: failure.failed })
    metricsServer?.stop()
    await store.close()
    // The store can fail as late as while it is closed.
    const exitCode = failure.hasFailed() ? EXIT.storeUnusable : servedCode
    log.info({ exitCode }, 'ended')
    return exitCode
  } finally {
    metricsServer?.stop()
    await store.close()
    await closeLog()
  }
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

/** Waits for the failure of a store that must not be written to any more, and then sees that the process ends soon. */
function watchForFailure(log: Logger, io: Io) {
  const { promise: failed, resolve } = Promise.withResolvers<void>()
  let hasFailed = false
  return {
    failed,
    hasFailed: () => hasFailed,
    onFailure(error: AppError) {
      hasFailed = true
      log.fatal({ reason: String(error.cause) }, 'the store has failed: nothing more is written, and the process ends')
      setTimeout(() => io.exit(EXIT.storeUnusable), EXIT_AFTER_FAILURE_MS)
      resolve()
    },
  }
}

async function openServedStore(
  options: ServeOptions,
  onFailure: (error: AppError) => void,
  statistics: Statistics | undefined,
  log: Logger,
) {
  const store = await openStore(options.database, onFailure, {
    ...openOptionsOf(options),
    durability: options.durability,
    writesInThread: true,
    keepsTrying: true,
    onCreated: (database) => log.info({ database }, 'created a new, empty store'),
    onEvent: ({ level, message, sizes }) => log[level](sizes, message),
    observer: statistics?.writes,
  })
  const exposed = engineOf(options.database).exposedFiles()
  if (exposed.length > 0) log.warn(`the database is open to others: chmod 600 ${exposed.join(' ')}`)
  return store
}
