import type { Database, SQLQueryBindings } from 'bun:sqlite'
import { statSync } from 'node:fs'
import { AppError } from '../../../domain/error.ts'
import { storeUnusable } from '../../errors.ts'
import { COLUMNS, TABLES, type Table, type Target } from '../../tools/contents.ts'
import { isOutOfSpace, sqliteCode } from '../errors.ts'
import { fileIdentity, foundSideFiles } from '../files/file-system.ts'
import { closeForReplacement, lockAlone } from '../files/lock.ts'
import { inspect, isUnfinishedCopy } from '../files/preflight.ts'
import { findProblems } from '../health.ts'
import { insertInto } from '../insert.ts'
import { migrate, UNFINISHED_ID } from '../migrate.ts'
import { contentsOf } from './contents.ts'
import { createDatabase, type NewDatabase } from './new-database.ts'

/**
 * `CopyTools.fill` for SQLite. Until the copy is finished, a file with the database's name marks an unfinished copy, and every
 * command refuses that file. Then the database replaces the mark.
 */
export async function fillSqlite<T>(path: string, fill: (target: Target) => Promise<T>): Promise<T> {
  using _locked = placeMark(path)
  const mark = fileIdentity(path)
  try {
    using copy = createDatabase(path, { readwrite: true, create: false, safeIntegers: true, strict: true })
    migrate(copy.db, copy.path)
    return await fill(
      targetOf(copy, () => {
        if (fileIdentity(path) === mark) return copy.replace()
        throw storeUnusable(`The database ${path} was moved or replaced meanwhile.`)
      }),
    )
  } catch (error) {
    throw toFillError(error, path)
  }
}

function targetOf({ db, path }: NewDatabase, replaceMark: () => void): Target {
  const prepare = (table: Table) =>
    db.prepare<unknown, SQLQueryBindings[]>(insertInto(table, Object.keys(COLUMNS[table])))
  const inserts = { users: prepare('users'), tokens: prepare('tokens'), plants: prepare('plants') }
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
      db.run('begin')
      db.run('delete from sqlite_sequence')
      db.run(`insert into sqlite_sequence (name, seq) values ('users', ?1), ('tokens', ?2)`, [userId, tokenId])
      db.run('commit')
      replaceMark()
    },
  }
}

/**
 * Gives the name of the database to a mark, durably: a database without tables, whose application id says that it is an
 * unfinished copy. Returns a connection that locks the mark. Throws `store_unusable` if there is a database that is not empty.
 */
function placeMark(path: string): Database {
  if (!isUnfinishedCopy(path)) {
    requireEmpty(path)
    using made = createDatabase(path, { readwrite: true, create: false })
    made.db.run(`pragma application_id = ${UNFINISHED_ID}`)
    made.replace()
  }
  const locked = lockAlone(path, 'it may be another plantstore copy: let it end')
  if (isUnfinishedCopy(path)) return locked
  locked.close(true)
  throw storeUnusable(`The database ${path} was made by another process meanwhile.`)
}

/** Throws `store_unusable` unless there is no store, or an empty one. Removes the side files of an empty one. */
function requireEmpty(path: string): void {
  if (inspect(path) && statSync(path).size > 0) {
    using db = lockAlone(path, 'end it')
    const hasTables = db.prepare('select name from sqlite_schema').values().length > 0
    const anyRow = TABLES.map((table) => `select 1 from ${table}`).join(' union all ')
    if (hasTables && db.prepare(`${anyRow} limit 1`).values().length > 0) {
      throw storeUnusable(`The database ${path} is not empty: name another one.`)
    }
    closeForReplacement(db)
  }
  const beside = foundSideFiles(path)
  if (beside.length > 0) throw storeUnusable(`${beside.join(' and ')} would be taken for a part of it: move that away.`)
}

/** Says why the database cannot be made. An `AppError` says already why the source cannot be read. */
function toFillError(error: unknown, path: string): unknown {
  if (error instanceof AppError) return error
  if (isOutOfSpace(error)) return storeUnusable(`There is no space for the database ${path}: make room.`, error)
  if (sqliteCode(error) === undefined) return error
  return storeUnusable(`The database ${path} cannot be made: ${String(error)}.`, error)
}
