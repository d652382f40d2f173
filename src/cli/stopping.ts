import { exitCodeOf, type Io, type Signal } from './io.ts'

/** A signal that asks to end, for a task that comes to an end of its own then. */
export interface Stopping {
  /** Aborted by the first signal. */
  readonly signal: AbortSignal
  /** Which it was, if one has come. */
  stoppedBy(): Signal | undefined
}

/** Ends by a signal what can be ended at many points, instead of at once. A second signal ends the process at once. */
export function stopOnSignal(io: Pick<Io, 'onSignal' | 'exit'>): Stopping {
  const controller = new AbortController()
  let stoppedBy: Signal | undefined
  io.onSignal((signal) => {
    if (stoppedBy !== undefined) io.exit(exitCodeOf(signal))
    stoppedBy = signal
    controller.abort(new Error(`stopped by ${signal}`))
  })
  return { signal: controller.signal, stoppedBy: () => stoppedBy }
}

/** A stream up to the signal, whose reason is thrown then: what comes next may never come. */
export async function* untilAborted<T>(stream: AsyncIterable<T>, signal: AbortSignal): AsyncGenerator<T> {
  const items = stream[Symbol.asyncIterator]()
  const aborted = new Promise<never>((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)))
  // It may also be aborted when nobody waits.
  aborted.catch(() => undefined)
  for (;;) {
    const { value, done } = await Promise.race([items.next(), aborted])
    if (done) return
    yield value
  }
}
