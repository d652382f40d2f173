import { join } from 'node:path'
import { SERVER_CORE, type Workspace } from '../workspace.ts'
import type { SyncLatency } from './sync.ts'

const SYNC = join(import.meta.dir, 'sync.ts')

/** Measures on the server core, where the databases are, how long a write of 4 KiB with its sync takes. */
export async function measureSync(workspace: Workspace, seconds: number): Promise<SyncLatency> {
  const file = workspace.file('sync')
  return JSON.parse(await workspace.run(SERVER_CORE, ['bun', SYNC, file, String(seconds)]))
}
