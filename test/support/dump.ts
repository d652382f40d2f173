import { Database } from 'bun:sqlite'
import { BACKUP_OF } from '../../src/store/sqlite/files/schema.ts'

/**
 * All that a database holds: the ids in its header, its schema, and all rows of all tables. Leaves out the records of
 * backups.
 */
export function dump(database: string): Record<string, unknown> {
  using db = new Database(database, { readonly: true, safeIntegers: true })
  const rowsOf = (sql: string): unknown[][] => db.prepare(sql).values()
  const tables = rowsOf(`select name from sqlite_schema where type = 'table' and name != '${BACKUP_OF}' order by name`)
    .flat()
    .map(String)
  return {
    applicationId: rowsOf('pragma application_id'),
    userVersion: rowsOf('pragma user_version'),
    schema: rowsOf(
      `select type, name, sql from sqlite_schema where sql is not null and name != '${BACKUP_OF}' order by name`,
    ),
    ...Object.fromEntries(
      tables
        .filter((table) => table !== 'last_backup')
        .map((table) => [table, rowsOf(`select * from ${table} order by 1, 2`)]),
    ),
  }
}
