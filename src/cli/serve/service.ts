// Tested in test/fault/sigterm.test.ts.
import type { RequestStatistics } from '../../http/statistics.ts'
import type { OpenedStore } from '../../store/database.ts'
import { databaseOf } from '../../store/open.ts'
import { VERSION } from '../../version.ts'
import { provideFirstToken } from './first-token.ts'
import { type Drain, prepareHttpService } from './http-service.ts'
import { canReloadCertificate, watchCertificate } from './renewal.ts'
import type { ServerContext } from './server-context.ts'

/** After a failure, requests in progress have this long to be answered. */
const DRAIN_AFTER_FAILURE_MS = 500

/** Serves plants until a signal comes or the store fails, and drains. */
export async function runService(
  context: ServerContext,
  store: OpenedStore,
  statistics: RequestStatistics | undefined,
) {
  const { options, shutdown, log, io, threads } = context
  const readyAtMs = new Float64Array(new SharedArrayBuffer(Float64Array.BYTES_PER_ELEMENT))
  const { nowMs, monotonicMs } = io
  const services = { store, log, draining: new AbortController(), readyAtMs, statistics, nowMs, monotonicMs }
  const { share } = store
  const started = share && threads.start(() => ({ options, readyAtMs, share: share() }))
  const http = await prepareHttpService(options, services)
  const { location } = databaseOf(options.database)
  // From the first connection on, clients can take all descriptors.
  await Promise.all([store.opened, started])
  if (shutdown.hasFailed) return
  const isShared = options.threads > 1 || canReloadCertificate(options)
  const { address, url } = await http.listen(options.listen, isShared ? 'leader' : 'none')
  threads.listen(address)
  io.onHangup(watchCertificate(context, http))
  log.info({ address: url, database: location, version: VERSION }, 'listening')
  const tokenProvided = provideFirstToken(context, services, address)

  const stop = async (drain: Drain) => {
    const others = threads.stop({ ...drain, hasFailed: shutdown.hasFailed })
    const cut = (await http.stop(drain)) + (await others)
    if (cut > 0) log.warn({ requests: cut }, 'requests were cut: they took longer than --drain')
  }
  const stopped = shutdown.signalled.then(async (signal) => {
    log.info({ signal }, 'ending')
    await stop({ drainMs: options.drain, waitMs: options.drainWait })
    await http.flush()
  })
  await Promise.race([shutdown.failed, stopped, tokenProvided.then(() => stopped)])
  // The store can also fail while the server drains, and as late as at the last write.
  if (shutdown.hasFailed) await stop({ drainMs: DRAIN_AFTER_FAILURE_MS, waitMs: 0 })
}
