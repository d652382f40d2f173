// Tested in test/fault/killed-commands.test.ts.
import { AppError } from '../error.ts'
import type { CloneOptions } from '../store/database.ts'
import { Ended, exitCodeOf, type Io, type Signal } from './io.ts'

/** How often a line is printed. A shorter task prints none. */
export const LINE_EVERY_MS = 2000
/** How long a task has to see that a signal stops it. It sees nothing while it waits for a pipe, a lock or a database. */
const STOP_TIMEOUT_MS = 1000

/** Returns a function that now and then prints which share is done, if that is known, and a text like "3 of 9 plants copied". */
export function progressLines({ report, monotonicMs }: Pick<Io, 'report' | 'monotonicMs'>) {
  let lineAtMs = monotonicMs() + LINE_EVERY_MS
  return (done: number, total: number | undefined, text: string): void => {
    const nowMs = monotonicMs()
    if (nowMs < lineAtMs) return
    lineAtMs = nowMs + LINE_EVERY_MS
    const share = total === undefined ? '' : `${Math.floor((100 * done) / Math.max(done, total, 1))} %: `
    void report(share + text)
  }
}

/** Clones a database, shows the progress, and stops on a signal. Then nothing is left. */
export const runClone = <T>(io: Io, task: (options: CloneOptions) => Promise<T>): Promise<T> => {
  const show = progressLines(io)
  const onProgress = (done: number, total: number) => show(done, total, `${done} of ${total} plants copied`)
  const clone = (signal: AbortSignal) => task({ signal, onProgress })
  return runUntilSignal(io, clone, () => 'nothing was made. Run the same command again.')
}

/**
 * Runs a task until it ends or a signal stops it. After a signal it prints `stoppedText`, which says how far the task came and
 * how to go on, and ends the command. `isCut` says that the task did not stop in time, so that a step may still be done. If the
 * task fails with a known outcome and without a message, it prints the same and rejects.
 */
export async function runUntilSignal<T>(
  io: Pick<Io, 'onSignal' | 'report'>,
  task: (signal: AbortSignal) => Promise<T>,
  stoppedText: (isCut: boolean) => string,
): Promise<T> {
  const stopping = new AbortController()
  const stopped = Promise.withResolvers<never>()
  let received: Signal | undefined
  io.onSignal((signal) => {
    received = signal
    stopping.abort(new Ended(exitCodeOf(signal)))
    setTimeout(() => stopped.reject(new Ended(exitCodeOf(signal))), STOP_TIMEOUT_MS)
  })
  try {
    return await Promise.race([task(stopping.signal), stopped.promise])
  } catch (error) {
    if (error instanceof Ended)
      await io.report(`Stopped by ${received}: ${stoppedText(error !== stopping.signal.reason)}`)
    const saysHowFar = !(error instanceof AppError) || error.message !== '' || error.outcomeIsUnknown
    if (!saysHowFar) await io.report(`Stopped: ${stoppedText(false)}`)
    throw error
  }
}
