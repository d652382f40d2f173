import { describeAddress, type PostgresAddress } from '../../domain/database-url.ts'
import type { Durability } from '../../domain/store.ts'
import { unusable } from '../opening.ts'
import type { Client } from './connection.ts'

/**
 * Refuses, with one line that says why, a server that may lose what it has answered with success, and a database that does
 * not hold every text. A server that does not have a setting is not asked for it.
 */
export async function inspect(client: Client, address: PostgresAddress, durability: Durability): Promise<void> {
  const rows = await client.query<[name: string, setting: string]>(
    `select name, setting from pg_catalog.pg_settings where name in ('fsync', 'synchronous_commit', 'server_encoding')`,
  )
  const settings = new Map(rows)
  const where = `The database ${describeAddress(address)}`
  if (settings.get('fsync') === 'off') {
    throw unusable(`${where} has fsync = off and may lose everything with the power: turn it on.`)
  }
  if (settings.get('synchronous_commit') === 'off' && durability === 'full') {
    throw unusable(
      `${where} has synchronous_commit = off and may lose the latest writes with the power: turn it on, or use --durability normal.`,
    )
  }
  const encoding = settings.get('server_encoding') ?? 'UTF8'
  if (encoding !== 'UTF8') throw unusable(`${where} has the encoding ${encoding}: make one with UTF8.`)
}
