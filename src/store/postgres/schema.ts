// Tested in test/store/postgres/open.test.ts.
import { describeAddress, type PostgresAddress } from '../../database-url.ts'
import type { Durability } from '../../domain/store.ts'
import { requireVersion, storeUnusable } from '../../engine/errors.ts'
import type { OpenOptions } from '../database.ts'
import { type Client, sqlState } from './driver.ts'
import { isConflict, repeat } from './errors.ts'
import usersTokensPlants from './migrations/0001-users-tokens-plants.sql' with { type: 'text' }
import rotationBlock from './migrations/0002-rotation-block.sql' with { type: 'text' }
import tokenExpiry from './migrations/0003-token-expiry.sql' with { type: 'text' }
import tokenChanges from './migrations/0004-token-changes.sql' with { type: 'text' }

/** The statements of a script. Some databases take only one statement per query. */
const statementsOf = (script: string): readonly string[] => script.split(/;\s*$/m).filter((text) => text.trim() !== '')

/**
 * The migrations in order, as statements. The version of a schema is the number of migrations that it has had. Some databases
 * commit each change of a schema at once, so a process that ends may leave half of a migration. Therefore each statement can be
 * repeated.
 */
export const MIGRATIONS: readonly (readonly string[])[] = [
  usersTokensPlants,
  rotationBlock,
  tokenExpiry,
  tokenChanges,
].map(statementsOf)
export const SCHEMA_VERSION = MIGRATIONS.length

/** How long a start tries to migrate while others do the same. */
const MIGRATE_MS = 10_000
/** The longest time for a migration. To build an index of many tokens takes minutes. */
const MIGRATION_TIMEOUT_MS = 3_600_000

type VersionRow = { readonly version: bigint }
const SELECT_VERSION = 'select version from plantstore.schema_version'
const SELECT_SCHEMA = "select 1 from pg_catalog.pg_namespace where nspname = 'plantstore'"
/** What every database has before its first migration. */
export const BOOTSTRAP = [
  'create schema if not exists plantstore',
  'create table if not exists plantstore.schema_version (id int8 primary key check (id = 1), version int8 not null)',
  'insert into plantstore.schema_version (id, version) values (1, 0) on conflict do nothing',
]

/** Refuses a server that may lose acknowledged writes, and a database that cannot hold every text. Servers may lack a setting. */
export async function inspect(client: Client, address: PostgresAddress, durability: Durability): Promise<void> {
  const rows = await client.query<{ readonly name: string; readonly setting: string }>(
    `select name, setting from pg_catalog.pg_settings
     where name in ('fsync', 'synchronous_commit', 'server_encoding', 'array_nulls')`,
  )
  const settings = new Map(rows.map(({ name, setting }) => [name, setting]))
  const database = `The database ${describeAddress(address)}`
  if (settings.get('fsync') === 'off' && durability !== 'storage') {
    throw storeUnusable(
      `${database} has fsync = off and may lose everything in a power failure: turn it on, or use --durability storage if its storage is durable without it.`,
    )
  }
  if (settings.get('synchronous_commit') === 'off' && durability !== 'normal') {
    throw storeUnusable(
      `${database} has synchronous_commit = off and may lose the latest writes in a power failure: turn it on, or use --durability normal.`,
    )
  }
  const encoding = settings.get('server_encoding') ?? 'UTF8'
  if (encoding !== 'UTF8') throw storeUnusable(`${database} has the encoding ${encoding}: create one with UTF8.`)
  if (settings.get('array_nulls') === 'off') {
    throw storeUnusable(`${database} has array_nulls = off, which stores missing texts as "NULL": turn it on.`)
  }
}

/**
 * Brings the schema up to date, and completes what another process has begun. If many processes start at once, one does it. With
 * `mustExist` it refuses a missing store, and without `onRaised` an older schema. Returns whether this process created it.
 */
export function migrate(client: Client, address: PostgresAddress, { mustExist, onRaised }: OpenOptions) {
  const database = describeAddress(address)
  return repeat(MIGRATE_MS, isCreatedByOthers, async () => {
    const version = await schemaVersion(client)
    if (version === SCHEMA_VERSION) return false
    requireVersion(database, version, SCHEMA_VERSION, onRaised !== undefined)
    if (version === 0 && mustExist) {
      throw storeUnusable(`There is no plant store in ${database}: name the database that the server uses.`)
    }
    const from = await client.transaction(async (query) => {
      // A role may own a schema and may not create one, not even `if not exists`.
      const first = version === 0 ? (await query(SELECT_SCHEMA)).length : BOOTSTRAP.length
      for (const statement of BOOTSTRAP.slice(first)) await query(statement)
      // Other processes that have come this far wait for the lock.
      const [locked] = await query<VersionRow>(`${SELECT_VERSION} for update`)
      for (const statement of MIGRATIONS.slice(Number(locked?.version)).flat()) await query(statement)
      await query('update plantstore.schema_version set version = $1', [SCHEMA_VERSION])
      return Number(locked?.version)
    }, MIGRATION_TIMEOUT_MS)
    if (from > 0 && from < SCHEMA_VERSION) onRaised?.(from, SCHEMA_VERSION)
    return from === 0
  })
}

/** The version of a database's schema. It is 0 if there is none, or only its beginning. */
async function schemaVersion(client: Client): Promise<number> {
  try {
    const [row] = await client.query<VersionRow>(SELECT_VERSION)
    return Number(row?.version ?? 0)
  } catch (error) {
    // The table or the schema does not exist.
    if (/^(?:42P01|3F000)$/.test(sqlState(error))) return 0
    throw error
  }
}

/** Whether another process creates the same schema, table or column at this moment. */
const isCreatedByOthers = (error: unknown): boolean =>
  isConflict(error) || /^(?:42P06|42P07|42701|23505|42710|XX000)$/.test(sqlState(error))
