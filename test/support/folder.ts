import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** A folder in memory, if the system has one. A sync there waits for no disk. */
export const MEMORY = existsSync('/dev/shm') ? '/dev/shm' : undefined

/** Makes an empty folder, by default in the folder for temporary files. Removes it after its use. */
export function makeFolder(parent = tmpdir()) {
  const path = mkdtempSync(join(parent, 'plantstore-'))
  return { path, [Symbol.dispose]: () => rmSync(path, { recursive: true, force: true }) }
}
