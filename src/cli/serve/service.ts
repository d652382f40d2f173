import type { AppError } from '../../domain/error.ts'
import type { Store } from '../../domain/store.ts'
import { createApp } from '../../http/app.ts'
import { listen, type RunningServer } from '../../http/server.ts'
import type { RequestStatistics } from '../../http/statistics.ts'
import type { Tls } from '../../http/tls.ts'
import { recordTokenUses } from '../../http/token-uses.ts'
import type { Logger } from '../../log.ts'
import { engineOf } from '../../store/open.ts'
import { VERSION } from '../../version.ts'
import type { Settings } from '../command.ts'
import { EXIT, type Io, type Signal } from '../io.ts'
import { provideFirstToken } from './first-token.ts'

/** After a failure of the store, the process ends within this time, also if something has not ended in good order. */
const EXIT_AFTER_FAILURE_MS = 1000
/** Within that time, requests in progress have this long to be answered. */
const DRAIN_AFTER_FAILURE_MS = 500
/** This much of --drain is left for closing the store and for the last log lines. */
const CLOSE_MS = 1000

/** The options of `serve`, with the certificate and the key of the server. Without them it serves plain HTTP. */
export type ServeOptions = Settings & { readonly tls: Tls | undefined }

/** Only a server with an identity provider loads the code of JWTs. */
async function openProvider({ options, log, io }: Serving, statistics: RequestStatistics | undefined) {
  const { jwtIssuer: issuer, jwtAudience: audience, jwtKeys: keyFile, jwtDefaultScope: defaultScope } = options
  if (issuer === undefined || audience === undefined) return undefined
  const { identityProvider } = await import('../../http/jwt/provider.ts')
  return identityProvider({ issuer, audience, keyFile, defaultScope }, { ...io, log, statistics })
}

/** What all parts of a server need. */
export interface Serving {
  readonly options: ServeOptions
  readonly endings: ReturnType<typeof watchEndings>
  readonly log: Logger
  readonly io: Io
}

/**
 * What ends the service: the first signal, or the failure of a store that must not be written to any more. After a failure it
 * sees that the process ends soon.
 */
export function watchEndings(log: Logger, io: Io) {
  const { promise: failed, resolve: fail } = Promise.withResolvers<void>()
  const endings = {
    signalled: new Promise<Signal>((resolve) => io.onSignal(resolve)),
    failed,
    hasFailed: false,
    onFailure(error: AppError): void {
      endings.hasFailed = true
      log.fatal({ reason: String(error.cause) }, 'the store has failed: nothing more is written, and the process ends')
      setTimeout(() => io.exit(EXIT.storeUnusable), EXIT_AFTER_FAILURE_MS)
      fail()
    },
  }
  return endings
}

/** Serves plants until a signal comes or the store fails, and drains. */
export async function runService(serving: Serving, store: Store, statistics: RequestStatistics | undefined) {
  const { options, endings, log, io } = serving
  const { idleTimeout: idleTimeoutMs, tls } = options
  const lifecycle = { isDraining: false }
  const uses = recordTokenUses(store, log, io.nowMs)
  const provider = await openProvider(serving, statistics)
  const app = createApp({
    store,
    provider,
    log,
    lifecycle,
    statistics,
    recordUse: uses.recordUse,
    logsRequests: options.accessLog === 'on' && log.isLevelEnabled('info'),
    logsAddresses: options.logAddresses === 'on',
    trustedProxies: options.trustedProxy ?? [],
    usesTls: tls !== undefined,
    maxBodyBytes: options.maxBody,
    listMax: options.listMax,
    rateLimit: options.rateLimit,
    servesPage: options.page,
    servesDocs: options.docs,
    corsOrigins: options.corsOrigin ?? [],
    publicUrl: options.publicUrl,
    nowMs: io.nowMs,
    monotonicMs: io.monotonicMs,
  })
  const server = await listen(options.listen, app, { idleTimeoutMs, flag: '--listen', socketMode: 0o660, tls })
  log.info({ address: server.url, database: engineOf(options.database).location, version: VERSION }, 'listening')
  const tokenProvided = provideFirstToken({ store, address: server.address, log, options, io }, lifecycle)

  const stop = async (drainMs: number, waitMs: number) => {
    lifecycle.isDraining = true
    uses.stop()
    await drain(server, drainMs, waitMs, log)
  }
  const stopped = endings.signalled.then(async (signal) => {
    log.info({ signal }, 'ending')
    await stop(options.drain, options.drainWait)
    await uses.flush()
  })
  await Promise.race([endings.failed, stopped, tokenProvided.then(() => stopped)])
  // The store can also fail while the server drains, and as late as at the last write.
  if (endings.hasFailed) await stop(DRAIN_AFTER_FAILURE_MS, 0)
}

/**
 * Waits until requests in progress are answered, and cuts those that take longer than `drainMs` allows. Within that time, the
 * server takes new connections for `waitMs`: until load balancers have noticed.
 */
async function drain(server: RunningServer, drainMs: number, waitMs: number, log: Logger): Promise<void> {
  // While connections arrive, the runtime accepts them and runs no timer. While the server drains, each answer closes its
  // connection and clients open new ones. So without a wait, no timer may come before the listener is closed.
  if (waitMs > 0) await Bun.sleep(waitMs)
  const closeMs = Math.min(CLOSE_MS, drainMs / 4)
  const leftMs = Math.max(0, drainMs - waitMs - closeMs)
  const isOver = await Promise.race([server.stop().then(() => true), Bun.sleep(leftMs).then(() => false)])
  const cut = isOver ? 0 : server.kill()
  if (cut > 0) log.warn({ requests: cut }, 'requests were cut: they took longer than --drain')
}
