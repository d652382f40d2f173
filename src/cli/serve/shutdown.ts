// Tested in test/fault/failing-sync.test.ts.
import type { Logger } from '../../log.ts'
import { EXIT, type Io, type Signal } from '../io.ts'

/** After a failure, the process ends within this time, also if something has not ended in good order. */
const EXIT_AFTER_FAILURE_MS = 1000

export type Shutdown = ReturnType<typeof watchShutdown>

/** What ends the service: the first signal, or a failure of a thread or of the store, after which the process ends soon. */
export function watchShutdown(log: Logger, io: Io) {
  const { promise: failed, resolve } = Promise.withResolvers<void>()
  /** Returns whether this is the first failure, which is the one to log. */
  const fail = (): boolean => {
    if (shutdown.hasFailed) return false
    shutdown.hasFailed = true
    setTimeout(() => io.exit(EXIT.storeUnusable), EXIT_AFTER_FAILURE_MS)
    resolve()
    return true
  }
  const shutdown = {
    signalled: new Promise<Signal>((resolve) => io.onSignal(resolve)),
    failed,
    hasFailed: false,
    /** Called by every thread that finds the failure of the store. The first call counts. */
    onFailure(reason: string): void {
      if (fail()) log.fatal({ reason }, 'the store has failed: nothing more is written, and the process ends')
    },
    /** Called if a thread that answers requests ends too early. */
    onThreadEnd(thread: number, reason: string): void {
      if (fail()) log.fatal({ thread, reason }, 'a thread that answers requests has failed: the process ends')
    },
  }
  return shutdown
}
