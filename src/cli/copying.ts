import type { CopyOptions } from '../store/opening.ts'
import { exitCodeOf, type Io } from './io.ts'
import { showProgress } from './progress.ts'
import { stopOnSignal } from './stopping.ts'

/** After so long of reading a database at one moment, the person is told what that does to a server. */
export const SNAPSHOT_TOLD_MS = 5000

/**
 * Runs what makes a copy of a database, which shows its progress and can be stopped. Returns nothing if it was: then
 * nothing was made.
 */
export async function runCopy<T>(
  io: Io,
  exit: (code: number) => void,
  task: (options: CopyOptions) => Promise<T>,
): Promise<T | undefined> {
  const stopping = stopOnSignal(io)
  using progress = showProgress(io, 'plants copied')
  const tellLong = watchSnapshot(io)
  try {
    return await task({
      signal: stopping.signal,
      onProgress(done, total) {
        tellLong()
        progress.update(done, total)
      },
    })
  } catch (error) {
    const signal = stopping.stoppedBy()
    if (signal === undefined || error !== stopping.signal.reason) throw error
    exit(exitCodeOf(signal))
    await io.tell(`Stopped by ${signal}: nothing was made.\n`)
    return undefined
  }
}

/** Returns what is to be called while a snapshot is read: it tells, once, that this takes long. */
export function watchSnapshot({ tell, monotonicMs }: Pick<Io, 'tell' | 'monotonicMs'>): () => void {
  const begunAtMs = monotonicMs()
  let isTold = false
  return () => {
    if (isTold || monotonicMs() - begunAtMs < SNAPSHOT_TOLD_MS) return
    isTold = true
    void tell('This takes a while: until it is done, the WAL of the database grows with what a server writes.\n')
  }
}
