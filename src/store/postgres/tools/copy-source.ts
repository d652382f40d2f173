import type { Source } from '../../tools/contents.ts'
import { type ConnectionOptions, createClient, type Transaction } from '../connection.ts'
import { isConnectionLost, toAppError } from '../errors.ts'
import { migrate } from '../migrate.ts'
import { toOpenError } from '../open-errors.ts'
import { inspect } from '../preflight.ts'
import { contentsOf } from './contents.ts'
import { requireAlone } from './sessions.ts'

/** How long a copy may take at most: a day. */
export const COPY_TIMEOUT_MS = 86_400_000

/**
 * Opens a database to copy from. With a snapshot others may go on to write, which is not seen. Without one it rejects with
 * `store_unusable` where a process of ours is connected to it, at the beginning or when it is read again; and as the store
 * does.
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
      const { pid, contents } = await begin(inside)
      if (isSnapshot) return use(contents)
      const alone = () => requireAlone(watcher, address, { ownPid: pid, advice: 'end it, or use --snapshot' })
      await alone()
      return use({
        ...contents,
        async readAgain(useAgain) {
          await alone()
          return watcher.transaction(async (later) => useAgain((await begin(later)).contents), COPY_TIMEOUT_MS)
        },
      })
    }, COPY_TIMEOUT_MS)
  } catch (error) {
    throw isConnectionLost(error) ? toAppError(error) : error
  } finally {
    await Promise.all([client.close(), watcher.close()])
  }
}

/** What the transaction sees from now on, and whose it is. */
async function begin(inside: Transaction) {
  try {
    await inside.query('set transaction isolation level repeatable read, read only')
    const [row] = await inside.query<[bigint]>('select pg_catalog.pg_backend_pid()::int8')
    return { pid: row?.[0] ?? 0n, contents: await contentsOf(inside) }
  } catch (error) {
    throw toAppError(error)
  }
}
