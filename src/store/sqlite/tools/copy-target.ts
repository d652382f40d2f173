import type { Database, SQLQueryBindings } from 'bun:sqlite'
import { rmSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import { AppError } from '../../../domain/error.ts'
import { storeUnusable } from '../../errors.ts'
import { COLUMNS, TABLES, type Table, type Target } from '../../tools/contents.ts'
import { isOutOfSpace, sqliteCode } from '../errors.ts'
import { createFile, fileIdentity, foundSideFiles, syncDirectory } from '../files/file-system.ts'
import { lockAlone } from '../files/lock.ts'
import { inspect, isUnfinishedCopy } from '../files/preflight.ts'
import { findProblems } from '../health.ts'
import { insertInto } from '../insert.ts'
import { APPLICATION_ID, MIGRATIONS, newer, pragmaNumber, SCHEMA_VERSION, UNFINISHED_ID } from '../migrate.ts'
import { contentsOf } from './contents.ts'

/**
 * `CopyTools.fill` for SQLite. Until the copy is finished, the application id of the database says so, and every command refuses
 * it. No other process can open it meanwhile.
 */
export async function fillSqlite<T>(path: string, fill: (target: Target) => Promise<T>): Promise<T> {
  try {
    using db = openTarget(path)
    return await fill(targetOf(db, path))
  } catch (error) {
    throw toFillError(error, path)
  }
}

function targetOf(db: Database, path: string): Target {
  const prepare = (table: Table) =>
    db.prepare<unknown, SQLQueryBindings[]>(insertInto(table, Object.keys(COLUMNS[table])))
  const inserts = { users: prepare('users'), tokens: prepare('tokens'), plants: prepare('plants') }
  const file = fileIdentity(path)
  db.run('begin')
  return {
    async insert(table, rows) {
      for (const row of rows) inserts[table].run(...row)
    },
    async read(use) {
      db.run('commit')
      // Read the file itself, and not the cache.
      db.run('pragma shrink_memory')
      const problems = findProblems(db)
      if (problems.length > 0) throw storeUnusable(`The copy is damaged: ${problems.join('; ')}.`)
      const found = await use(contentsOf(db, path))
      db.run('rollback')
      return found
    },
    async finish({ userId, tokenId }) {
      if (fileIdentity(path) !== file) throw storeUnusable(`The database ${path} was moved or replaced meanwhile.`)
      db.run('begin')
      db.run('delete from sqlite_sequence')
      db.run(`insert into sqlite_sequence (name, seq) values ('users', ?1), ('tokens', ?2)`, [userId, tokenId])
      db.run('commit')
      // This changes bytes of one sector, which the disk writes whole. A journal on disk would outlive a kill, and the file would
      // look finished although SQLite would undo that.
      db.run('pragma journal_mode = memory')
      // SQLite has emptied the journal, and does not delete it while the database is locked.
      rmSync(`${path}-journal`, { force: true })
      db.run(`pragma application_id = ${APPLICATION_ID}`)
    },
  }
}

/**
 * Opens a database that is missing, empty or an unfinished copy, locks it, and makes it an unfinished copy without rows, durably.
 * Throws `store_unusable` and changes nothing if there is another database.
 */
function openTarget(path: string): Database {
  const isUnfinished = isUnfinishedCopy(path)
  const isMissing = !isUnfinished && inspect(path) === undefined
  if (isMissing || statSync(path).size === 0) {
    const beside = foundSideFiles(path)
    if (beside.length > 0)
      throw storeUnusable(`${beside.join(' and ')} would be taken for a part of it: move that away.`)
  }
  if (isMissing) {
    createFile(path)
    syncDirectory(dirname(path))
  }
  const db = lockAlone(path, isUnfinished ? 'it may be another plantstore copy: let it end' : 'end it')
  try {
    beginCopy(db, path)
    return db
  } catch (error) {
    db.close(true)
    throw error
  }
}

function beginCopy(db: Database, path: string): void {
  const version = pragmaNumber(db, 'user_version')
  if (version > SCHEMA_VERSION) throw newer(path, version)
  const anyRow = TABLES.map((table) => `select 1 from ${table}`).join(' union all ')
  const isCopy = pragmaNumber(db, 'application_id') === UNFINISHED_ID
  if (!isCopy && version > 0 && db.prepare(`${anyRow} limit 1`).values().length > 0) {
    throw storeUnusable(`The database ${path} is not empty: name another one.`)
  }
  // The rows would be written twice with a WAL. A rollback journal holds nothing of a database that grows.
  db.run('pragma journal_mode = delete')
  db.run('begin')
  for (const migration of MIGRATIONS.slice(version)) db.run(migration)
  for (const table of TABLES.toReversed()) db.run(`delete from ${table}`)
  db.run(`pragma user_version = ${SCHEMA_VERSION}`)
  db.run(`pragma application_id = ${UNFINISHED_ID}`)
  db.run('commit')
}

/** Says why the database cannot be made. An `AppError` says already why the source cannot be read. */
function toFillError(error: unknown, path: string): unknown {
  if (error instanceof AppError) return error
  if (isOutOfSpace(error)) return storeUnusable(`There is no space for the database ${path}: make room.`, error)
  if (sqliteCode(error) === undefined) return error
  return storeUnusable(`The database ${path} cannot be made: ${String(error)}.`, error)
}
