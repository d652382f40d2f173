import { renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { makeFolder } from '../support/folder.ts'
import type { Requirement } from '../support/requirement.ts'

const DAY_SECONDS = 86_400

/** Where libfaketime is, as its own command says it; `undefined` where there is none. */
const LIBRARY = findLibrary()

/**
 * A clock for processes of their own that can jump while they run: the one that tells the time of day. Those that only
 * count on stay the machine's, as do the times of files, and what the kernel itself waits for by the time of day.
 */
export function makeClock() {
  const folder = makeFolder()
  const file = join(folder.path, 'offset')
  const jumpTo = (days: number) => {
    // By a rename, so that nobody reads a half of it.
    writeFileSync(`${file}.new`, `${days < 0 ? '' : '+'}${days * DAY_SECONDS}`)
    renameSync(`${file}.new`, file)
  }
  jumpTo(0)
  return {
    /** What puts a process on this clock. */
    env: {
      LD_PRELOAD: LIBRARY ?? '',
      FAKETIME_TIMESTAMP_FILE: file,
      FAKETIME_NO_CACHE: '1',
      DONT_FAKE_MONOTONIC: '1',
      NO_FAKE_STAT: '1',
    },
    /** From now on the clock is so many days ahead of the machine's. */
    jumpTo,
    /** Removes what the library has left in memory for a process that has ended. */
    forget(pid: number): void {
      for (const name of [`faketime_shm_${pid}`, `sem.faketime_sem_${pid}`])
        rmSync(join('/dev/shm', name), { force: true })
    },
    [Symbol.dispose]: folder[Symbol.dispose],
  }
}

export const FAKETIME: Requirement = { missing: 'faketime is missing', isMet: () => LIBRARY !== undefined }

function findLibrary(): string | undefined {
  if (Bun.which('faketime') === null) return undefined
  const { exitCode, stdout } = Bun.spawnSync(['faketime', '-m', '-f', '+0', 'printenv', 'LD_PRELOAD'])
  return exitCode === 0 ? stdout.toString().trim() : undefined
}
