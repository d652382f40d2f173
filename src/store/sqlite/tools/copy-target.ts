import type { Database, SQLQueryBindings } from 'bun:sqlite'
import { renameSync, rmSync } from 'node:fs'
import { basename, dirname } from 'node:path'
import { AppError } from '../../../domain/error.ts'
import { storeUnusable } from '../../errors.ts'
import { COLUMNS, type TABLES, type Target } from '../../tools/contents.ts'
import { isOutOfSpace, sqliteCode } from '../errors.ts'
import { fileIdentity } from '../files/file-identity.ts'
import { createFile } from '../files/new-file.ts'
import { partialPath, removeLeftovers, syncDirectory } from '../files/partial-files.ts'
import { findProblems } from '../health.ts'
import { insertInto } from '../insert.ts'
import { migrate } from '../migrate.ts'
import { contentsOf } from './contents.ts'
import { openUnfinished } from './unfinished-database.ts'
import { placeMark } from './unfinished-mark.ts'

/**
 * `CopyTools.fill` for SQLite. Until the copy is finished, a file with the database's name marks an unfinished copy, and every
 * command refuses that file. Then the database replaces the mark.
 */
export async function fillSqlite<T>(path: string, fill: (target: Target) => Promise<T>): Promise<T> {
  using mark = placeMark(path)
  removeLeftovers(dirname(path), (name) => name === basename(path))
  const partial = partialPath(path)
  let db: Database | undefined
  try {
    createFile(partial, path)
    db = openUnfinished(partial, { readwrite: true, create: false, safeIntegers: true, strict: true })
    migrate(db, partial)
    const identity = fileIdentity(partial)
    const replaceMark = () => {
      if (fileIdentity(partial) !== identity || fileIdentity(path) !== mark.identity) {
        throw storeUnusable(`The database ${path}, or what was to be it, was moved or replaced.`)
      }
      renameSync(partial, path)
      syncDirectory(dirname(path))
    }
    return await fill(targetOf(db, partial, replaceMark))
  } catch (error) {
    throw toFillError(error, path)
  } finally {
    db?.close(true)
    rmSync(partial, { force: true })
  }
}

function targetOf(db: Database, partial: string, replaceMark: () => void): Target {
  const prepare = (table: (typeof TABLES)[number]) =>
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
      const found = await use(contentsOf(db, partial))
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

/** Says why the database cannot be made. An `AppError` says already why the source cannot be read. */
function toFillError(error: unknown, path: string): unknown {
  if (error instanceof AppError) return error
  if (isOutOfSpace(error)) return storeUnusable(`There is no space for the database ${path}: make room.`, error)
  if (sqliteCode(error) === undefined) return error
  return storeUnusable(`The database ${path} cannot be made: ${String(error)}.`, error)
}
