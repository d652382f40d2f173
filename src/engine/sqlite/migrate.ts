import type { Database } from 'bun:sqlite'
import { schemaTooNew, storeUnusable } from '../../store/errors.ts'
import usersTokensPlants from '../../store/sqlite/migrations/0001-users-tokens-plants.sql' with { type: 'text' }
import rotationBlock from '../../store/sqlite/migrations/0002-rotation-block.sql' with { type: 'text' }
import lastBackupTokenExpiry from '../../store/sqlite/migrations/0003-last-backup-token-expiry.sql' with {
  type: 'text',
}
import { rowsOf } from './driver.ts'

/** Marks a database as ours (https://sqlite.org/pragma.html#pragma_application_id): the letters `plst`. */
export const APPLICATION_ID = 0x706c7374

/** The migrations in order. A database's `user_version` is the number of migrations that it has had. */
export const MIGRATIONS: readonly string[] = [usersTokensPlants, rotationBlock, lastBackupTokenExpiry]
/** The schema that this executable knows. */
export const SCHEMA_VERSION = MIGRATIONS.length
const SQLITE_VERSION_MIN = '3.51.3'

/**
 * Brings the schema up to date, completely or not at all. If several processes start at once, one of them does. Returns whether
 * this process created the schema.
 */
export function migrate(writer: Database, path: string): boolean {
  if (pragmaNumber(writer, 'user_version') === SCHEMA_VERSION) return false
  const update = writer.transaction(() => {
    const version = pragmaNumber(writer, 'user_version')
    if (version > SCHEMA_VERSION) throw schemaTooNew(path, version, SCHEMA_VERSION)
    for (const migration of MIGRATIONS.slice(version)) writer.run(migration)
    writer.run(`pragma application_id = ${APPLICATION_ID}`)
    writer.run(`pragma user_version = ${SCHEMA_VERSION}`)
    return version === 0
  })
  return update.immediate()
}

/** Reads a pragma whose value is a number. */
export const pragmaNumber = (db: Database, pragma: string, schema = 'main'): number =>
  Number(rowsOf(db, `pragma ${schema}.${pragma}`)[0]?.[0])

/**
 * Refuses a linked SQLite that can corrupt a WAL database which two processes share
 * (https://sqlite.org/wal.html#walresetbug).
 */
export function requireSafeSqlite(version: string): void {
  if (Bun.semver.order(version, SQLITE_VERSION_MIN) < 0) {
    throw storeUnusable(`SQLite ${version} can corrupt a shared database: use ${SQLITE_VERSION_MIN} or later.`)
  }
}
