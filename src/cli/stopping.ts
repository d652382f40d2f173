import { nextTurn } from '../domain/next-turn.ts'
import { exitCodeOf, type Io, type Signal } from './io.ts'

/**
 * Runs a task until it ends or a signal stops it. Then tells how far it came and how to go on, as `stoppedText` says it, and
 * sets the exit code. Returns nothing if it was stopped. A second signal ends the process at once.
 */
export async function runStoppable<T>(
  io: Pick<Io, 'onSignal' | 'exit' | 'tell'>,
  exit: (code: number) => void,
  task: (signal: AbortSignal) => Promise<T>,
  stoppedText: () => string,
): Promise<T | undefined> {
  const stopping = new AbortController()
  const received: Signal[] = []
  io.onSignal((signal) => {
    if (received.push(signal) > 1) io.exit(exitCodeOf(signal))
    stopping.abort(new Error(`stopped by ${signal}`))
  })
  try {
    return await task(stopping.signal)
  } catch (error) {
    const [signal] = received
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
    await nextTurn()
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
