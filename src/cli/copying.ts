import type { CopyOptions } from '../store/file-tools.ts'
import type { Io } from './io.ts'
import { showProgress } from './progress.ts'
import { runStoppable } from './stopping.ts'

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
  const copy = async (signal: AbortSignal) => {
    using progress = showProgress(io, 'plants copied')
    const tellLong = watchSnapshot(io)
    return await task({
      signal,
      onProgress(done, total) {
        tellLong()
        progress.update(done, total)
      },
    })
  }
  return runStoppable(io, exit, copy, () => 'nothing was made. Run the same command again.')
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
