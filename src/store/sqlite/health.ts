import type { Database } from 'bun:sqlite'
import { isUtf8 } from 'node:buffer'
import { statfs } from 'node:fs/promises'
import { withKnownOutcome } from '../../domain/error.ts'
import { EXPIRES_SOON_MS, EXPIRING_TOKENS_MAX, type Store } from '../../domain/store.ts'
import type { Connections } from '../../engine/sqlite/connections.ts'
import { rowsOf } from '../../engine/sqlite/driver.ts'
import { isDamage } from '../../engine/sqlite/errors.ts'
import { sizeOf } from '../../engine/sqlite/files/file-system.ts'
import { findRuleBreaks, LAST_ID_MAX, type Rule } from '../row-rules.ts'

/** The health and the statistics of a SQLite file. */
export function health({ path, reader, read, checkpointedAtMs, writer: { write, load } }: Connections) {
  const selectOne = reader.prepare('select 1 from users limit 1')
  const measure = reader.prepare<unknown, [number, number]>(
    `select coalesce(max(at_ms), 0), coalesce(max(bytes), 0), (select count(*) from (select 1 from tokens
       where revoked_at_ms is null and replaced_by is null and expires_at_ms > ?1 and expires_at_ms <= ?2 limit ${EXPIRING_TOKENS_MAX}))
     from last_backup`,
  )

  return {
    async checkReady() {
      await read(() => selectOne.values())
      // It writes and syncs a page, and changes nothing.
      await write(['rewriteApplicationId']).catch(withKnownOutcome)
    },

    checkIntegrity: () => read(() => findProblems(reader)),

    load,

    async measure(nowMs) {
      const [row = []] = await read(() => measure.values(nowMs, nowMs + EXPIRES_SOON_MS))
      const [lastBackupAtMs = 0, lastBackupBytes = 0, expiringTokens = 0] = row.map(Number)
      const { bsize, blocks, bavail } = await statfs(path)
      return {
        databaseBytes: sizeOf(path),
        walBytes: sizeOf(`${path}-wal`),
        diskBytes: blocks * bsize,
        diskFreeBytes: bavail * bsize,
        checkpointedAtS: checkpointedAtMs() / 1000,
        lastBackupAtS: lastBackupAtMs / 1000,
        lastBackupBytes,
        expiringTokens,
      }
    },
  } satisfies Partial<Store>
}

/** SQLite takes any bytes for a text. `findProblems` defines the function. */
const TEXT: Rule = { words: 'UTF-8 without U+0000', isBrokenBy: (column) => `not is_text(cast(${column} as blob))` }

/** A table that has had rows has one row with its last identifier (https://sqlite.org/autoinc.html). A bad one counts as two. */
const MISCOUNTS = ['users', 'tokens'].map(
  (table) => `select '${table} are miscounted' from (select coalesce(max(id), 0) as last from main.${table})
    where coalesce((select sum(iif(typeof(seq) = 'integer' and seq between last and ${LAST_ID_MAX}, 1, 2))
      from main.sqlite_sequence where name = '${table}'), last = 0) <> 1`,
)

/** Reads a whole database. Returns its problems, a line each. */
export function findProblems(db: Database): readonly string[] {
  try {
    const found = rowsOf(db, 'pragma main.integrity_check').flat().map(String)
    // A backup may have an older schema.
    const selectColumn = db.prepare('select 1 from pragma_table_info(?1) where name = ?2')
    db.function('is_text', (bytes: Uint8Array | null) => bytes && isUtf8(bytes) && !bytes.includes(0))
    const breaks = findRuleBreaks('main.', TEXT, (...column) => selectColumn.values(...column).length > 0)
    return [
      // SQLite reports several problems of one b-tree in one text.
      ...found.flatMap((text) => text.split('\n')).filter((line) => line !== 'ok'),
      ...[...MISCOUNTS, ...breaks].flatMap((select) => rowsOf(db, select).flat().map(String)),
    ]
  } catch (error) {
    // SQLite cannot read on after some kinds of damage. That is a problem to report, too.
    if (error instanceof Error && isDamage(error)) return [error.message]
    throw error
  }
}
