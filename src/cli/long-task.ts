import { setImmediate as nextTurn } from 'node:timers/promises'
import { SingleBar } from 'cli-progress'
import { AppError } from '../domain/error.ts'
import type { CopyOptions } from '../store/engine.ts'
import { Ended, exitCodeOf, type Io, type Signal } from './io.ts'

/** How often a line is printed if stderr is no terminal or a dumb one. A shorter task prints none. */
export const LINE_EVERY_MS = 2000
/** A task that takes longer than this prints its note. */
export const NOTE_AFTER_MS = 5000
/** What reading a snapshot does to a server. */
export const SNAPSHOT_NOTE =
  'This takes a while: until it is done, the WAL of the database grows with what a server writes.\n'

/**
 * Shows a bar on a terminal. Elsewhere, and while the total is not known, it prints a line now and then. If the task takes long,
 * it also prints the note, once.
 */
export function showProgress(io: Pick<Io, 'terminal' | 'tell' | 'monotonicMs'>, note?: string) {
  const stream = io.terminal()
  const bar =
    stream &&
    new SingleBar({
      stream,
      format: '{bar} {percentage} % | {value} of {total} {what} | {eta_formatted} left',
      barCompleteChar: '█',
      barIncompleteChar: '░',
      clearOnComplete: true,
      // A command that is killed then leaves the terminal as it was.
      linewrap: true,
    })
  let noteAtMs = io.monotonicMs() + NOTE_AFTER_MS
  let lineAtMs = io.monotonicMs() + LINE_EVERY_MS
  return {
    /** `what` follows the count: "plants copied". `total` is `undefined` if it is not known. */
    update(done: number, total: number | undefined, what: string): void {
      const nowMs = io.monotonicMs()
      if (note !== undefined && nowMs >= noteAtMs) {
        noteAtMs = Number.POSITIVE_INFINITY
        void io.tell(note)
      }
      if (bar !== undefined && total !== undefined) {
        if (!bar.isActive) bar.start(total, done, { what })
        bar.setTotal(total)
        bar.update(done, { what })
        return
      }
      if (nowMs < lineAtMs) return
      lineAtMs = nowMs + LINE_EVERY_MS
      void io.tell(`${total === undefined ? done : `${done} of ${total}`} ${what}\n`)
    },
    [Symbol.dispose]: () => bar?.stop(),
  }
}

/** Makes a copy of a database, shows the progress, and stops on a signal. Then no copy is left. */
export const runCopy = <T>(io: Io, task: (options: CopyOptions) => Promise<T>, note?: string): Promise<T> => {
  const copy = async (signal: AbortSignal) => {
    using progress = showProgress(io, note)
    return await task({ signal, onProgress: (done, total) => progress.update(done, total, 'plants copied') })
  }
  return runUntilSignal(io, copy, () => 'nothing was made. Run the same command again.')
}

/**
 * Runs a task until it ends or a signal stops it. After a signal it prints `stoppedText`, which says how far the task came and
 * how to go on, and ends the command. If the store fails, is full or is locked, it prints the same and rejects with the error.
 */
export async function runUntilSignal<T>(
  io: Pick<Io, 'onSignal' | 'tell'>,
  task: (signal: AbortSignal) => Promise<T>,
  stoppedText: () => string,
): Promise<T> {
  const stopping = new AbortController()
  let received: Signal | undefined
  io.onSignal((signal) => {
    received = signal
    stopping.abort(new Error(`stopped by ${signal}`))
  })
  try {
    return await task(stopping.signal)
  } catch (error) {
    if (received !== undefined && error === stopping.signal.reason) {
      await io.tell(`Stopped by ${received}: ${stoppedText()}\n`)
      throw new Ended(exitCodeOf(received))
    }
    // The messages of these errors do not say how far the task came.
    if (error instanceof AppError && error.message === '') await io.tell(`Stopped: ${stoppedText()}\n`)
    throw error
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
