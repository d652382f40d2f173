import { nextTurn } from '../domain/next-turn.ts'
import { type CommandIo, exitCodeOf, type Signal } from './io.ts'

/**
 * Runs a task until it ends or a signal stops it. After a signal it prints `stoppedText`, which says how far the task came and
 * how to go on, sets the exit code, and returns nothing. A second signal ends the process at once.
 */
export async function runUntilSignal<T>(
  io: Pick<CommandIo, 'onSignal' | 'exit' | 'tell' | 'setExitCode'>,
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
    io.setExitCode(exitCodeOf(signal))
    await io.tell(`Stopped by ${signal}: ${stoppedText()}\n`)
    return undefined
  }
}

/** The items of a stream until the signal is aborted. Then it throws the reason of the signal, without waiting for an item. */
export async function* untilAborted<T>(stream: AsyncIterable<T>, signal: AbortSignal): AsyncGenerator<T> {
  const items = stream[Symbol.asyncIterator]()
  for (;;) {
    const item = await orAborted(items.next(), signal)
    if (item.done) return
    yield item.value
    // Signals need a turn of the event loop, and a device like /dev/zero is read without one.
    await nextTurn()
  }
}

/**
 * Resolves as the work does, or rejects with the reason of the signal once the signal is aborted. Each call makes a promise of
 * its own, because a shared promise would keep every item until the end.
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
