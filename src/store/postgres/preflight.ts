import { describeAddress, type PostgresAddress } from '../../domain/database-url.ts'
import type { Durability } from '../../domain/store.ts'
import { storeUnusable } from '../errors.ts'
import type { Client } from './connection.ts'

/**
 * Refuses a server that may lose acknowledged writes, and a database that cannot hold every text. A server may lack some of
 * these settings.
 */
export async function inspect(client: Client, address: PostgresAddress, durability: Durability): Promise<void> {
  const rows = await client.query<[name: string, setting: string]>(
    `select name, setting from pg_catalog.pg_settings where name in ('fsync', 'synchronous_commit', 'server_encoding')`,
  )
  const settings = new Map(rows)
  const database = `The database ${describeAddress(address)}`
  if (settings.get('fsync') === 'off') {
    throw storeUnusable(`${database} has fsync = off and may lose everything in a power failure: turn it on.`)
  }
  if (settings.get('synchronous_commit') === 'off' && durability === 'full') {
    throw storeUnusable(
      `${database} has synchronous_commit = off and may lose the latest writes in a power failure: turn it on, or use --durability normal.`,
    )
  }
  const encoding = settings.get('server_encoding') ?? 'UTF8'
  if (encoding !== 'UTF8') throw storeUnusable(`${database} has the encoding ${encoding}: create one with UTF8.`)
}
