import type { Database } from 'bun:sqlite'
import { openImmutable, rowsOf } from '../connection.ts'
import { sqliteCode } from '../errors.ts'

/**
 * The table in a backup that names its database. A database in use has no such table, because `restore` leaves it out, and so
 * does a backup of a backup.
 */
export const BACKUP_OF = 'backup_of'

/** Records the absolute path of the database, without links, in a new backup of it. */
export function recordPath(backup: Database, path: string): void {
  backup.run(`create table main.${BACKUP_OF} (path text not null) strict`)
  backup.run(`insert into main.${BACKUP_OF} (path) values (?1)`, [path])
}

/** The path that a backup records. `undefined` if it records none or is no readable database. Leaves no trace. */
export function recordedPath(file: string): string | undefined {
  try {
    const db = openImmutable(file)
    try {
      return rowsOf<[string]>(db.prepare(`select path from ${BACKUP_OF}`).values())[0]?.[0]
    } finally {
      db.close(true)
    }
  } catch (error) {
    if (sqliteCode(error) === undefined) throw error
    return undefined
  }
}
