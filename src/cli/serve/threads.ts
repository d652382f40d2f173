import type { Address } from '../../address.ts'
import type { StoreShare } from '../../store/database.ts'
import { closeMsOf, type Drain, type ServeOptions, waitForAll } from './http-service.ts'
import type { Shutdown } from './shutdown.ts'
import type { Tls } from './tls.ts'

/** What a thread that answers gets from the main thread. Threads have the numbers from 1 on. */
export interface ThreadStart {
  readonly options: ServeOptions
  readonly readyAtMs: Float64Array<SharedArrayBuffer>
  readonly number: number
  readonly share: StoreShare
  readonly listening: Int32Array<SharedArrayBuffer>
}

/** How a thread stops answering. If nothing has failed, the store takes the last uses of tokens. */
export type Stop = Drain & { readonly hasFailed: boolean }

/** A message to a thread: how it starts, or a call of one of its functions. It answers each with what that returns. */
export type ThreadOrder = { readonly start: ThreadStart } | ThreadCall
type ThreadCall =
  | { readonly call: 'listen'; readonly argument: Address }
  | { readonly call: 'stop'; readonly argument: Stop }
  | { readonly call: 'readMetrics'; readonly argument?: never }
  | { readonly call: 'prepare'; readonly argument: Tls }
  | { readonly call: 'settle'; readonly argument: boolean }

/** A message from a thread: the answer to the message with an id, lines of the log, or why the store or the thread has failed. */
export type ThreadSent =
  | { readonly id: number; readonly answer: unknown }
  | { readonly lines: string }
  | { readonly failure: string }
  | { readonly error: string }

/** A thread without time to drain has so much to say how many requests it has cut. */
const STOP_MIN_MS = 250
/** Others do not wait longer for the answer of a thread, which may be in an endless loop. */
const ANSWER_MAX_MS = 1000

export type Threads = ReturnType<typeof prepareThreads>

/** So many threads that answer beside the main one. They report failures to `shutdown`, and pass log lines to `writeLines`. */
export function prepareThreads(count: number, shutdown: Shutdown, writeLines: (lines: string) => void) {
  let threads: readonly ReturnType<typeof startThread>[] = []
  const listening = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT))
  /** The answers of all threads. One that has ended, or that does not answer in time, answers `undefined`. */
  const ask = (order: ThreadCall, maxMs = ANSWER_MAX_MS): Promise<unknown[]> =>
    Promise.all(threads.map((thread) => Promise.race([thread.ask(order), Bun.sleep(maxMs)])))
  return {
    /** Starts all threads. Resolves once they have the store open. */
    async start(makeStart: () => Omit<ThreadStart, 'number' | 'listening'>): Promise<void> {
      const numbers = Array.from({ length: count }, (_, index) => index + 1)
      threads = numbers.map((number) => startThread({ ...makeStart(), number, listening }, shutdown, writeLines))
      await Promise.all(threads.map(({ started }) => started))
    },
    /** Has all threads listen at the address where this one has just begun to. None accepts a connection before all listen. */
    listen(address: Address): void {
      void ask({ call: 'listen', argument: address })
      waitForAll(listening, count + 1)
    },
    ask,
    /** Has all threads answer no more requests, within the time of the drain. Returns how many requests were cut. */
    async stop(stop: Stop): Promise<number> {
      const maxMs = Math.max(STOP_MIN_MS, stop.drainMs - closeMsOf(stop.drainMs) / 2)
      const cuts = await ask({ call: 'stop', argument: stop }, maxMs)
      return cuts.reduce<number>((sum, cut) => sum + Number(cut ?? 0), 0)
    },
    /** Ends all threads. Until then they are asked for metrics, so that no counter falls. */
    end(): void {
      for (const thread of threads) thread.end()
    },
  }
}

function startThread(start: ThreadStart, { onFailure, onThreadEnd }: Shutdown, writeLines: (lines: string) => void) {
  const worker = new Worker(new URL('./http-thread.ts', import.meta.url).href)
  const unanswered = new Map<number, (answer: unknown) => void>()
  let asked = 0
  let hasEnded = false
  const end = (reason?: string) => {
    if (hasEnded) return
    hasEnded = true
    // What it still sends comes too late.
    worker.onmessage = null
    // To terminate a thread that answers nothing would block this one. The end of the process ends it.
    if (unanswered.size === 0) worker.terminate()
    for (const resolve of unanswered.values()) resolve(undefined)
    if (reason !== undefined) onThreadEnd(start.number, reason)
  }
  worker.onmessage = ({ data }: MessageEvent<ThreadSent>) => {
    if ('lines' in data) return writeLines(data.lines)
    if ('failure' in data) return onFailure(data.failure)
    if ('error' in data) return end(data.error)
    unanswered.get(data.id)?.(data.answer)
    unanswered.delete(data.id)
  }
  worker.onerror = ({ message }) => end(message)
  worker.addEventListener('close', () => end('it has ended'))
  const ask = (order: ThreadOrder, ports: Bun.Transferable[] = []) =>
    new Promise<unknown>((resolve) => {
      if (hasEnded) return resolve(undefined)
      unanswered.set(++asked, resolve)
      worker.postMessage({ id: asked, order }, ports)
    })
  return { started: ask({ start }, [start.share.port]), ask, end }
}
