import { formatAddress } from '../../domain/address.ts'
import type { Store } from '../../domain/store.ts'
import { recordTokenUses } from '../../http/access/token-uses.ts'
import { createApp } from '../../http/app.ts'
import { listen, schemeOf } from '../../http/server.ts'
import type { Logger } from '../../log.ts'
import { engineOf } from '../../store/open.ts'
import { VERSION } from '../../version.ts'
import { EXIT, type Io, type Signal } from '../io.ts'
import { drain } from './drain.ts'
import { provideFirstToken } from './first-token.ts'
import type { Statistics } from './metrics-server.ts'
import type { ServeOptions } from './options.ts'
import { warnOfValidity } from './tls-options.ts'

/** After a failure of the store, requests in progress have this long to be answered. */
const DRAIN_AFTER_FAILURE_MS = 500

interface ServiceParts {
  readonly options: ServeOptions
  readonly store: Store
  readonly statistics: Statistics | undefined
  readonly log: Logger
  readonly io: Io
}

/** What ends the service: the first signal, or a store that must not be written to any more. */
interface Endings {
  readonly signalled: Promise<Signal>
  readonly failed: Promise<void>
}

/** Serves plants until a signal comes or the store fails, and drains. Resolves to the exit code. */
export async function runService(parts: ServiceParts, endings: Endings): Promise<number> {
  const { options, store, log, io } = parts
  const lifecycle = { isDraining: false }
  const uses = recordTokenUses(store, log, io.nowMs)
  const app = createApp({ ...appOptions(parts), lifecycle, recordUse: uses.recordUse })
  const { idleTimeout: idleTimeoutMs, tls } = options
  const server = await listen(options.listen, app, { idleTimeoutMs, flag: '--listen', tls })
  const address = formatAddress(server.address, schemeOf(options))
  log.info({ address, database: engineOf(options.database).location, version: VERSION }, 'listening')
  if (tls !== undefined) warnOfValidity(tls, io.nowMs(), log)
  const tokenProvided = provideFirstToken({ store, address: server.address, log, options, io }, lifecycle)
  await Promise.race([endings.failed, endings.signalled, tokenProvided])

  const stop = async (drainMs: number, waitMs: number) => {
    lifecycle.isDraining = true
    uses.stop()
    await drain(server, { drainMs, waitMs }, log)
  }
  const failed = endings.failed.then(() => EXIT.storeUnusable)
  const signalled = endings.signalled.then(async (signal) => {
    log.info({ signal }, 'ending')
    await stop(options.drain, options.drainWait)
    await uses.flush()
    return EXIT.done
  })
  // The store can also fail while the server drains, and as late as at the last write.
  const exitCode = await Promise.race([failed, signalled.then((code) => Promise.race([failed, code]))])
  if (exitCode === EXIT.storeUnusable) await stop(DRAIN_AFTER_FAILURE_MS, 0)
  return exitCode
}

const appOptions = ({ options, store, statistics, log, io }: ServiceParts) => ({
  store,
  log,
  logsRequests: options.accessLog === 'on',
  statistics: statistics?.http,
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
