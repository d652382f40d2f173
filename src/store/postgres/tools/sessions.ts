import { describeAddress, type PostgresAddress } from '../../../domain/database-url.ts'
import { storeUnusable } from '../../errors.ts'
import { APPLICATION_NAME, type Client } from '../connection.ts'
import { toAppError } from '../errors.ts'

/** PostgreSQL keeps the connection of a process that has ended for a moment. */
const PATIENCE_MS = 2000
const RETRY_MS = 50

/**
 * Rejects with `store_unusable` if another process of this program is connected to the database. A server is always connected,
 * unless it has lost the database. `ownPid` is another connection of this process.
 */
export async function requireAlone(
  client: Client,
  address: PostgresAddress,
  { ownPid = 0n, advice }: { readonly ownPid?: bigint; readonly advice: string },
): Promise<void> {
  const deadlineMs = performance.now() + PATIENCE_MS
  while ((await countOthers(client, ownPid)) > 0) {
    if (performance.now() > deadlineMs) {
      throw storeUnusable(`The database ${describeAddress(address)} is open in another process: ${advice}.`)
    }
    await Bun.sleep(RETRY_MS)
  }
}

async function countOthers(client: Client, ownPid: bigint): Promise<number> {
  try {
    const [row] = await client.query<[bigint]>(
      `select count(*) from pg_catalog.pg_stat_activity
       where datname = pg_catalog.current_database() and application_name = $1
         and pid <> pg_catalog.pg_backend_pid() and pid::int8 <> $2::int8`,
      [APPLICATION_NAME, ownPid],
    )
    return Number(row?.[0])
  } catch (error) {
    throw toAppError(error)
  }
}
