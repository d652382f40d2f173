import type { CopyOptions } from '../store/file-tools.ts'
import type { CommandIo, Io } from './io.ts'
import { showProgress } from './progress.ts'
import { runUntilSignal } from './stopping.ts'

/** After reading a snapshot for this long, the command says what this does to a server. */
export const SNAPSHOT_TOLD_MS = 5000

/** Makes a copy of a database, shows the progress, and stops on a signal. Then it returns nothing, and no copy is left. */
export async function runCopy<T>(io: CommandIo, task: (options: CopyOptions) => Promise<T>): Promise<T | undefined> {
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
  return runUntilSignal(io, copy, () => 'nothing was made. Run the same command again.')
}

/** Returns a function to call while a snapshot is read. Once, after a while, it prints that this takes long. */
export function watchSnapshot({ tell, monotonicMs }: Pick<Io, 'tell' | 'monotonicMs'>): () => void {
  const begunAtMs = monotonicMs()
  let isTold = false
  return () => {
    if (isTold || monotonicMs() - begunAtMs < SNAPSHOT_TOLD_MS) return
    isTold = true
    void tell('This takes a while: until it is done, the WAL of the database grows with what a server writes.\n')
  }
}
