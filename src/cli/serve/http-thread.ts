// Tested in test/fault/threads.test.ts.
import type { Address } from '../../address.ts'
import type { AppError } from '../../error.ts'
import { RequestStatistics, WriteStatistics } from '../../http/statistics.ts'
import { createLogger, formatFor, logToThread } from '../../log.ts'
import { joinStore } from '../../store/open.ts'
import { VERSION } from '../../version.ts'
import { prepareHttpService, waitForAll } from './http-service.ts'
import type { Stop, ThreadOrder, ThreadSent, ThreadStart } from './threads.ts'

declare const self: Worker

let thread: ReturnType<typeof start> | undefined

/** The entry point of a thread that answers requests, which threads.ts starts. */
self.onmessage = async ({ data: { id, order } }: MessageEvent<{ id: number; order: ThreadOrder }>) => {
  // Behind the last lines of the log.
  const send = (sent: ThreadSent) => setImmediate(() => self.postMessage(sent))
  try {
    if ('start' in order) thread = start(order.start)
    const running = await thread
    const answer = 'call' in order ? await running?.[order.call]?.(order.argument as never) : undefined
    send({ id, answer })
  } catch (error) {
    send({ error: String(error) })
  }
}

async function start({ number, options, readyAtMs, share, listening }: ThreadStart) {
  const destination = logToThread((lines) => self.postMessage({ lines } satisfies ThreadSent))
  const log = createLogger(options.logLevel, destination, await formatFor(options.hasColours))
  const statistics = options.metricsListen && { http: new RequestStatistics(), writes: new WriteStatistics() }
  const clocks = { nowMs: Date.now, monotonicMs: performance.now.bind(performance) }
  // The thread that writes may stand still, so this one says it, too.
  const onFailure = ({ cause }: AppError) => self.postMessage({ failure: String(cause) } satisfies ThreadSent)
  const store = joinStore(share, onFailure, { ...clocks, observer: statistics?.writes, threads: options.threads })
  const services = { store, log, draining: new AbortController(), readyAtMs, statistics: statistics?.http, ...clocks }
  const http = await prepareHttpService(options, services)
  const facts = { thread: number, store, version: VERSION, nowMs: clocks.nowMs }
  return {
    ...http,
    async listen(address: Address): Promise<void> {
      await http.listen(address, 'follower').finally(() => waitForAll(listening, options.threads))
    },
    readMetrics: statistics && (await import('../../http/metrics.ts')).threadMetrics({ ...statistics, ...facts }),
    async stop({ hasFailed, ...limits }: Stop): Promise<number> {
      const cut = await http.stop(limits)
      if (!hasFailed) await http.flush()
      await store.close()
      return cut
    },
  }
}
