import { join } from 'node:path'
import { SERVER_CORE, type Workspace } from '../workspace.ts'
import type { SyncLatency } from './sync.ts'

const SYNC = join(import.meta.dir, 'sync.ts')

/** Measures a write of 4 KiB with its sync, on the server core and on the disk of the databases. */
export async function measureSync(workspace: Workspace, seconds: number): Promise<SyncLatency> {
  const file = workspace.file('sync')
  return JSON.parse(await workspace.run(SERVER_CORE, ['bun', SYNC, file, String(seconds)]))
}
