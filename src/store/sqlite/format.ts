// Tested in test/cli/transcripts/schema.txt.
import { isUtf8 } from 'node:buffer'
import { rowsOf } from '../../engine/sqlite/driver.ts'
import type { Format } from '../../engine/sqlite/format.ts'
import { findRuleBreaks, LAST_ID_MAX, type Rule } from '../row-rules.ts'
import { fromRow } from '../rows.ts'
import { type Counts, KEYS, selectCounts, type Table } from '../tables.ts'
import usersTokensPlants from './migrations/0001-users-tokens-plants.sql' with { type: 'text' }
import rotationBlock from './migrations/0002-rotation-block.sql' with { type: 'text' }
import lastBackupTokenExpiry from './migrations/0003-last-backup-token-expiry.sql' with { type: 'text' }

export const MIGRATIONS: readonly string[] = [usersTokensPlants, rotationBlock, lastBackupTokenExpiry]
export const SCHEMA_VERSION = MIGRATIONS.length

/** SQLite takes any bytes for a text. `findBrokenRows` defines the function. */
const TEXT: Rule = { words: 'UTF-8 without U+0000', isBrokenBy: (column) => `not is_text(cast(${column} as blob))` }

/** A table that has had rows has one row with its last identifier (https://sqlite.org/autoinc.html). A wrong row counts 2. */
const MISCOUNTS = ['users', 'tokens'].map(
  (table) => `select '${table} are miscounted' from (select coalesce(max(id), 0) as last from main.${table})
    where coalesce((select sum(iif(typeof(seq) = 'integer' and seq between last and ${LAST_ID_MAX}, 1, 2))
      from main.sqlite_sequence where name = '${table}'), last = 0) <> 1`,
)

export const PLANT_FORMAT: Format<Counts> = {
  // The letters `plst`.
  applicationId: 0x706c7374,
  migrations: MIGRATIONS,
  findBrokenRows(db) {
    // A backup may have an older schema.
    const selectColumn = db.prepare('select 1 from pragma_table_info(?1) where name = ?2')
    db.function('is_text', (bytes: Uint8Array | null) => bytes && isUtf8(bytes) && !bytes.includes(0))
    const breaks = findRuleBreaks('main.', TEXT, (...column) => selectColumn.values(...column).length > 0)
    return [...MISCOUNTS, ...breaks].flatMap((select) => rowsOf(db, select).flat().map(String))
  },
  countRows: (db, schema) => fromRow(db.prepare<Record<Table, bigint>, []>(selectCounts(schema)).get() ?? {}),
  largest: { table: 'plants', key: KEYS.plants },
  // A clone was never backed up.
  notCloned: ['last_backup'],
}
