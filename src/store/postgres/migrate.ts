import { describeAddress, type PostgresAddress } from '../../domain/database-url.ts'
import { copyUnfinished, storeUnusable } from '../errors.ts'
import type { Client } from './connection.ts'
import { isConflict, sqlState } from './errors.ts'
import usersTokensPlants from './migrations/0001-users-tokens-plants.sql' with { type: 'text' }

/** The migrations in order. The version of a schema is the number of migrations that it has had. */
const MIGRATIONS: readonly string[] = [usersTokensPlants]
/** The schema that this executable knows. */
export const SCHEMA_VERSION = MIGRATIONS.length
/** The version of a copy that is not finished. No executable knows it, so all of them refuse the database. */
export const UNFINISHED_VERSION = 2147483647

/** How often a start tries to migrate while others do the same, and the pause between two attempts. */
const ATTEMPTS_MAX = 100
const ATTEMPT_PAUSE_MS = 20

const SELECT_VERSION = 'select version from plantstore.schema_version'
const BOOTSTRAP = `create schema if not exists plantstore;
  create table plantstore.schema_version (id int8 primary key check (id = 1), version int8 not null);
  insert into plantstore.schema_version (id, version) values (1, 0)`

interface MigrateOptions {
  readonly address: PostgresAddress
  /** Refuses a database without a store instead of creating one. */
  readonly mustExist: boolean
}

/**
 * Brings the schema up to date, completely or not at all. If many processes start at once, one of them does it. Returns
 * whether this process created the schema.
 */
export async function migrate(client: Client, { address, mustExist }: MigrateOptions): Promise<boolean> {
  let isCreated = false
  for (let attempt = 1; ; attempt++) {
    try {
      const version = await schemaVersion(client)
      if (version === SCHEMA_VERSION) return isCreated
      if (version === UNFINISHED_VERSION) throw copyUnfinished(describeAddress(address))
      if (version !== undefined && version > SCHEMA_VERSION) throw newer(address, version)
      if (version === undefined && mustExist) throw missing(address)
      if (version === undefined) await client.transaction(({ run }) => run(BOOTSTRAP))
      const isFirst = await client.transaction(async ({ query, run }) => {
        // Other processes that have come this far wait for the lock.
        const [[locked] = []] = await query<[bigint]>(`${SELECT_VERSION} for update`)
        const missing = MIGRATIONS.slice(Number(locked))
        for (const migration of missing) await run(migration)
        if (missing.length > 0) await query('update plantstore.schema_version set version = $1', [SCHEMA_VERSION])
        return locked === 0n
      })
      isCreated ||= isFirst
    } catch (error) {
      if (!isCreatedByOthers(error) || attempt >= ATTEMPTS_MAX) throw error
      await Bun.sleep(ATTEMPT_PAUSE_MS)
    }
  }
}

/** The version of a database's schema, or `undefined` if it has none. */
export async function schemaVersion(client: Client): Promise<number | undefined> {
  try {
    const [row] = await client.query<[bigint]>(SELECT_VERSION)
    return Number(row?.[0] ?? 0)
  } catch (error) {
    // The table or the schema does not exist.
    if (/^(?:42P01|3F000)$/.test(sqlState(error))) return undefined
    throw error
  }
}

/** Whether another process creates the same schema or table at this moment. */
const isCreatedByOthers = (error: unknown): boolean =>
  isConflict(error) || /^(?:42P06|42P07|23505|42710|XX000)$/.test(sqlState(error))

const newer = (address: PostgresAddress, version: number) =>
  storeUnusable(
    `The database ${describeAddress(address)} has schema version ${version}, but this executable knows versions up to ${SCHEMA_VERSION}: use the newer executable.`,
  )

const missing = (address: PostgresAddress) =>
  storeUnusable(`There is no plant store in ${describeAddress(address)}: name the database that the server uses.`)
