import { SingleBar } from 'cli-progress'
import { type Io, takesEscapeCodes } from './io.ts'

/** How often a line is printed if stderr is no terminal or a dumb one. A shorter task prints none. */
export const LINE_EVERY_MS = 2000

/** Shows the progress of a command. */
export interface Progress extends Disposable {
  /** `total` is `undefined` if it is not known. */
  readonly update: (done: number, total: number | undefined) => void
}

/** Shows a bar on a terminal and a line now and then elsewhere, or nothing without `io`. `what` follows the count: "plants copied". */
export function showProgress(io: ProgressIo | undefined, what: string): Progress {
  if (io === undefined) return { update: () => {}, [Symbol.dispose]: () => {} }
  const { tell, monotonicMs } = io
  const terminal = takesEscapeCodes(io.env) ? io.terminal() : undefined
  if (terminal === undefined) {
    let toldAtMs = monotonicMs()
    return {
      update(done, total) {
        if (monotonicMs() - toldAtMs < LINE_EVERY_MS) return
        toldAtMs = monotonicMs()
        void tell(total === undefined ? `${done} ${what}\n` : `${done} of ${total} ${what}\n`)
      },
      [Symbol.dispose]: () => {},
    }
  }
  const bar = new SingleBar({
    stream: terminal,
    format: `{bar} {percentage} % | {value} of {total} ${what} | {eta_formatted} left`,
    barCompleteChar: '█',
    barIncompleteChar: '░',
    clearOnComplete: true,
    // A command that is killed then leaves the terminal as it was.
    linewrap: true,
  })
  let isStarted = false
  return {
    update(done, total = done) {
      if (!isStarted) bar.start(total, done)
      isStarted = true
      bar.setTotal(total)
      bar.update(done)
    },
    [Symbol.dispose]() {
      if (isStarted) bar.stop()
    },
  }
}

type ProgressIo = Pick<Io, 'terminal' | 'env' | 'tell' | 'monotonicMs'>
