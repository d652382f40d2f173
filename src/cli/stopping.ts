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

/**
 * Runs a task until it ends or a signal stops it. Then tells how far it came and how to go on, as `stoppedText` says it, and
 * sets the exit code. Returns nothing if it was stopped.
 */
export async function runStoppable<T>(
  io: Pick<Io, 'onSignal' | 'exit' | 'tell'>,
  exit: (code: number) => void,
  task: (signal: AbortSignal) => Promise<T>,
  stoppedText: () => string,
): Promise<T | undefined> {
  const stopping = stopOnSignal(io)
  try {
    return await task(stopping.signal)
  } catch (error) {
    const signal = stopping.stoppedBy()
    if (signal === undefined || error !== stopping.signal.reason) throw error
    exit(exitCodeOf(signal))
    await io.tell(`Stopped by ${signal}: ${stoppedText()}\n`)
    return undefined
  }
}

/** A stream up to the signal, whose reason is thrown then: what comes next may never come. */
export async function* untilAborted<T>(stream: AsyncIterable<T>, signal: AbortSignal): AsyncGenerator<T> {
  const items = stream[Symbol.asyncIterator]()
  for (;;) {
    const item = await orAborted(items.next(), signal)
    if (item.done) return
    yield item.value
    // A device like /dev/zero is read without a turn of the event loop, and signals come in such a turn.
    await new Promise((resolve) => setImmediate(resolve))
  }
}

/**
 * What the work resolves to; rejects with the reason of the signal as soon as that is aborted. With a promise of its own each
 * time: one for all would keep every item until the end.
 */
export async function orAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  signal.throwIfAborted()
  const { promise: aborted, reject } = Promise.withResolvers<never>()
  const stop = () => reject(signal.reason)
  signal.addEventListener('abort', stop)
  try {
    return await Promise.race([work, aborted])
  } finally {
    signal.removeEventListener('abort', stop)
  }
}
