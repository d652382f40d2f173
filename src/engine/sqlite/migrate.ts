import type { Database } from 'bun:sqlite'
import { requireVersion, storeUnusable } from '../errors.ts'
import { rowsOf } from './driver.ts'
import { isDamage } from './errors.ts'
import type { Format } from './format.ts'

const SQLITE_VERSION_MIN = '3.51.3'

/**
 * Brings the schema up to date, completely or not at all. If several processes start at once, one of them does. Returns whether
 * this process created the schema. Without `onRaised` it refuses an older schema.
 */
export function migrate(writer: Database, path: string, format: Format, onRaised?: (from: number, to: number) => void) {
  const known = format.migrations.length
  if (pragmaNumber(writer, 'user_version') === known) return false
  const update = writer.transaction(() => {
    const version = pragmaNumber(writer, 'user_version')
    requireVersion(path, version, known, onRaised !== undefined)
    for (const migration of format.migrations.slice(version)) writer.run(migration)
    writer.run(`pragma application_id = ${format.applicationId}`)
    writer.run(`pragma user_version = ${known}`)
    return version
  })
  const version = update.immediate()
  if (version > 0 && version < known) onRaised?.(version, known)
  return version === 0
}

export const pragmaNumber = (db: Database, pragma: string, schema = 'main'): number =>
  Number(rowsOf(db, `pragma ${schema}.${pragma}`)[0]?.[0])

/** Refuses a SQLite that can corrupt a WAL database which two processes share (https://sqlite.org/wal.html#walresetbug). */
export function requireSafeSqlite(version: string): void {
  if (Bun.semver.order(version, SQLITE_VERSION_MIN) < 0) {
    throw storeUnusable(`SQLite ${version} can corrupt a shared database: use ${SQLITE_VERSION_MIN} or later.`)
  }
}

/** Reads a whole database. Returns its problems, a line each: those that a pragma finds, in SQLite's words, and broken rows. */
export function findProblems(
  db: Database,
  { findBrokenRows }: Pick<Format, 'findBrokenRows'>,
  pragma = 'main.integrity_check(100)',
): readonly string[] {
  const problems: string[] = []
  try {
    // Row by row, because it may fail after some of them. SQLite reports several problems of one b-tree in one text.
    for (const row of db.prepare<Record<string, string>, []>(`pragma ${pragma}`).iterate())
      for (const line of Object.values(row).join('\n').split('\n'))
        if (!/^(?:ok$|\*\*\* in database )/.test(line)) problems.push(line)
    problems.push(...findBrokenRows(db))
  } catch (error) {
    // SQLite cannot read on after some kinds of damage. That is a problem to report, too.
    if (!(error instanceof Error && isDamage(error))) throw error
    problems.push(error.message)
  }
  return problems
}
