import type { Source } from '../../tools/contents.ts'
import { type ConnectionOptions, createClient } from '../connection.ts'
import { isConnectionLost, toAppError } from '../errors.ts'
import { migrate } from '../migrate.ts'
import { toOpenError } from '../open-errors.ts'
import { inspect } from '../preflight.ts'
import { contentsOf } from './contents.ts'
import { requireAlone } from './sessions.ts'

/** The longest time for a copy: a day. */
export const COPY_TIMEOUT_MS = 86_400_000

/**
 * `CopyTools.read` for PostgreSQL. Without a snapshot it also rejects if another process of this program is connected when the
 * database is read again.
 */
export async function readPostgres<T>(
  options: ConnectionOptions,
  { isSnapshot }: { readonly isSnapshot: boolean },
  use: (source: Source) => Promise<T>,
): Promise<T> {
  const { address } = options
  const [client, watcher] = [createClient(options, 1), createClient(options, 1)]
  try {
    try {
      await inspect(client, address, 'normal')
      await migrate(client, { address, mustExist: true })
    } catch (error) {
      throw toOpenError(address, error)
    }
    return await client.transaction(async (inside) => {
      const contents = await contentsOf(inside)
      const [[pid = 0n] = []] = await inside.query<bigint[]>('select pg_catalog.pg_backend_pid()::int8')
      if (isSnapshot) return use(contents)
      const requireNoOther = () => requireAlone(watcher, address, { ownPid: pid, advice: 'end it, or use --snapshot' })
      await requireNoOther()
      return use({
        ...contents,
        async readAgain(useAgain) {
          await requireNoOther()
          return watcher.transaction(async (later) => useAgain(await contentsOf(later)), COPY_TIMEOUT_MS)
        },
      })
    }, COPY_TIMEOUT_MS)
  } catch (error) {
    throw isConnectionLost(error) ? toAppError(error) : error
  } finally {
    await Promise.all([client.close(), watcher.close()])
  }
}
