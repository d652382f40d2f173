import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** An empty folder that is gone after its use; in the folder for temporary files, unless another is named. */
export function makeFolder(parent = tmpdir()) {
  const path = mkdtempSync(join(parent, 'plantstore-'))
  return { path, [Symbol.dispose]: () => rmSync(path, { recursive: true, force: true }) }
}
