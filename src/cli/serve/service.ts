import type { RequestStatistics } from '../../http/statistics.ts'
import type { Logger } from '../../log.ts'
import type { OpenedStore } from '../../store/engine.ts'
import { engineOf } from '../../store/open.ts'
import { VERSION } from '../../version.ts'
import { EXIT, type Io, type Signal } from '../io.ts'
import { type Drain, prepareAnswering } from './answering.ts'
import { provideFirstToken } from './first-token.ts'
import { canRenew, type RenewalParts, renewal } from './renewal.ts'

/** After a failure of the store, the process ends within this time, also if something has not ended in good order. */
const EXIT_AFTER_FAILURE_MS = 1000
/** Within that time, requests in progress have this long to be answered. */
const DRAIN_AFTER_FAILURE_MS = 500

/** What all parts of a server need. */
export interface Serving extends RenewalParts {
  readonly endings: ReturnType<typeof watchEndings>
}

/**
 * What ends the service: the first signal, or the failure of a thread or of a store that must not be written to any more. After a
 * failure it sees that the process ends soon.
 */
export function watchEndings(log: Logger, io: Io) {
  const { promise: failed, resolve: fail } = Promise.withResolvers<void>()
  /** Every thread that finds a failure reports it. Returns whether this is the first report, which is the one to log. */
  const end = (): boolean => {
    if (endings.hasFailed) return false
    endings.hasFailed = true
    setTimeout(() => io.exit(EXIT.storeUnusable), EXIT_AFTER_FAILURE_MS)
    fail()
    return true
  }
  const endings = {
    signalled: new Promise<Signal>((resolve) => io.onSignal(resolve)),
    failed,
    hasFailed: false,
    onFailure(reason: string): void {
      if (end()) log.fatal({ reason }, 'the store has failed: nothing more is written, and the process ends')
    },
    onThreadEnd(thread: number, reason: string): void {
      if (end()) log.fatal({ thread, reason }, 'a thread that answers requests has failed: the process ends')
    },
  }
  return endings
}

/** Serves plants until a signal comes or the store fails, and drains. */
export async function runService(serving: Serving, store: OpenedStore, statistics: RequestStatistics | undefined) {
  const { options, endings, log, io, threads } = serving
  const readyAtMs = new Float64Array(new SharedArrayBuffer(Float64Array.BYTES_PER_ELEMENT))
  const lifecycle = { drain: new AbortController(), readyAtMs }
  const { nowMs, monotonicMs } = io
  const parts = { options, store, log, lifecycle, statistics, nowMs, monotonicMs }
  const { share } = store
  const started = share && threads.start(() => ({ options, readyAtMs, share: share() }))
  const answering = await prepareAnswering(parts)
  const { location } = engineOf(options.database)
  // From the first connection on, clients can take all descriptors.
  await Promise.all([store.opened, started])
  if (endings.hasFailed) return
  const isShared = options.threads > 1 || canRenew(options)
  const { address, url } = await answering.listen(options.listen, isShared ? 'first' : 'none')
  threads.listen(address)
  io.onHangup(renewal(serving, answering))
  log.info({ address: url, database: location, version: VERSION }, 'listening')
  const tokenProvided = provideFirstToken({ ...parts, address, location, io })

  const stop = async (drain: Drain) => {
    const others = threads.stop({ ...drain, hasFailed: endings.hasFailed })
    const cut = (await answering.stop(drain)) + (await others)
    if (cut > 0) log.warn({ requests: cut }, 'requests were cut: they took longer than --drain')
  }
  const stopped = endings.signalled.then(async (signal) => {
    log.info({ signal }, 'ending')
    await stop({ drainMs: options.drain, waitMs: options.drainWait })
    await answering.flush()
  })
  await Promise.race([endings.failed, stopped, tokenProvided.then(() => stopped)])
  // The store can also fail while the server drains, and as late as at the last write.
  if (endings.hasFailed) await stop({ drainMs: DRAIN_AFTER_FAILURE_MS, waitMs: 0 })
}
