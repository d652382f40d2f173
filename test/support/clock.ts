import { renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { makeFolder } from './folder.ts'
import type { Requirement } from './requirement.ts'

/** The path of libfaketime, as its own command prints it; `undefined` if it is missing. */
const LIBRARY = findLibrary()
export const FAKETIME: Requirement = { missing: 'faketime is missing', isMet: () => LIBRARY !== undefined }

/**
 * A clock that can jump while processes run. With `isMonotonic` their monotonic clocks jump, too. The times of files and the kernel's
 * own timers stay the machine's.
 */
export function makeClock({ isMonotonic = false } = {}) {
  const folder = makeFolder()
  const file = join(folder.path, 'offset')
  const jumpTo = (ms: number) => {
    // A rename, so that no process reads half a number.
    writeFileSync(`${file}.new`, `${ms < 0 ? '' : '+'}${ms / 1000}`)
    renameSync(`${file}.new`, file)
  }
  jumpTo(0)
  return {
    /** The environment of a process that uses this clock. */
    env: {
      LD_PRELOAD: LIBRARY ?? '',
      FAKETIME_TIMESTAMP_FILE: file,
      FAKETIME_NO_CACHE: '1',
      ...(!isMonotonic && { DONT_FAKE_MONOTONIC: '1' }),
      NO_FAKE_STAT: '1',
    },
    /** Moves the clock so many milliseconds ahead of the machine's. */
    jumpTo,
    /** Removes the shared memory that the library has left for a process that has ended. */
    forget(pid: number): void {
      for (const name of [`faketime_shm_${pid}`, `sem.faketime_sem_${pid}`])
        rmSync(join('/dev/shm', name), { force: true })
    },
    [Symbol.dispose]: folder[Symbol.dispose],
  }
}

function findLibrary(): string | undefined {
  if (Bun.which('faketime') === null) return undefined
  const { exitCode, stdout } = Bun.spawnSync(['faketime', '-m', '-f', '+0', 'printenv', 'LD_PRELOAD'])
  return exitCode === 0 ? stdout.toString().trim() : undefined
}
