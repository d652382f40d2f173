import { constants, type Database } from 'bun:sqlite'
import { existsSync, renameSync, rmSync, statSync } from 'node:fs'
import { basename, dirname } from 'node:path'
import { AppError } from '../../../domain/error.ts'
import { storeUnusable } from '../../errors.ts'
import { COLUMNS, type Table, type Target } from '../../tools/contents.ts'
import { openDatabase, rowsOf } from '../connection.ts'
import { isOutOfSpace, sqliteCode } from '../errors.ts'
import { fileIdentity } from '../files/file-identity.ts'
import { isUnfinishedCopy } from '../files/headers.ts'
import { type Locked, lockAlone } from '../files/lock.ts'
import { createFile } from '../files/new-file.ts'
import { partialPath, removeLeftovers, SIDE_FILES, syncDirectory } from '../files/partial-files.ts'
import { inspect } from '../files/preflight.ts'
import { findProblems } from '../health.ts'
import { migrate, UNFINISHED_ID } from '../migrate.ts'
import { contentsOf } from './contents.ts'

/**
 * Makes a database to copy into, where there is none, an empty one, or one that was not finished. While it is being filled,
 * and when it is not finished, its name has a mark that every use of it refuses; it takes the mark's place when it is whole
 * and on disk. Rejects with `store_unusable` where a database is in use or holds something: then it stays as it was.
 */
export async function fillSqlite<T>(path: string, fill: (target: Target) => Promise<T>): Promise<T> {
  using mark = placeMark(path)
  removeLeftovers(dirname(path), (name) => name === basename(path))
  const partial = partialPath(path)
  let db: Database | undefined
  try {
    db = openPartial(partial, path)
    const identity = fileIdentity(partial)
    return await fill(
      targetOf(db, partial, () => {
        if (fileIdentity(partial) !== identity || fileIdentity(path) !== mark.identity) {
          throw storeUnusable(`The database ${path}, or what was to be it, was moved or replaced.`)
        }
        renameSync(partial, path)
        syncDirectory(dirname(path))
      }),
    )
  } catch (error) {
    throw toFillError(error, path)
  } finally {
    db?.close(true)
    rmSync(partial, { force: true })
  }
}

function targetOf(db: Database, partial: string, place: () => void): Target {
  const inserts = new Map<Table, ReturnType<Database['prepare']>>()
  const insertInto = (table: Table) => {
    const columns = COLUMNS[table]
    return db.prepare(`insert into ${table} (${columns.join(', ')}) values (${columns.map(() => '?').join(', ')})`)
  }
  db.run('begin')
  return {
    async add(table, rows) {
      const insert = inserts.get(table) ?? insertInto(table)
      inserts.set(table, insert)
      for (const row of rows) insert.run(...row)
    },
    async read(use) {
      db.run('commit')
      // What is in memory tells nothing of the file.
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
      place()
    },
  }
}

/** A new database that will replace another one, locked until it is closed. Its journal is needed by nobody. */
function openPartial(path: string, replaced: string): Database {
  createFile(path, replaced)
  const db = openDatabase(path, { readwrite: true, create: false, safeIntegers: true, strict: true })
  db.run('pragma locking_mode = exclusive')
  db.run('pragma journal_mode = memory')
  db.run('pragma synchronous = full')
  db.run('pragma fullfsync = 1')
  migrate(db, path)
  return db
}

interface Mark extends Disposable {
  readonly identity: string
}

/** Has the database's name taken by a mark, durably, which nobody else fills while it is locked here. */
function placeMark(path: string): Mark {
  if (!isUnfinishedCopy(path)) {
    requireEmpty(path)
    const made = partialPath(path)
    makeMark(made, path)
    renameSync(made, path)
    syncDirectory(dirname(path))
  }
  const identity = fileIdentity(path)
  const locked = lockAlone(path, 'it may be another plantstore copy: let it end')
  if (fileIdentity(path) !== identity) {
    locked[Symbol.dispose]()
    throw storeUnusable(`The database ${path} was made by another process meanwhile.`)
  }
  return { identity, [Symbol.dispose]: locked[Symbol.dispose] }
}

/** A database without anything in it but who it is. */
function makeMark(path: string, replaced: string): void {
  createFile(path, replaced)
  const db = openDatabase(path, constants.SQLITE_OPEN_READWRITE)
  try {
    db.run('pragma synchronous = full')
    db.run('pragma fullfsync = 1')
    db.run(`pragma application_id = ${UNFINISHED_ID}`)
  } finally {
    db.close(true)
  }
}

/** Refuses what is there unless it is a store that holds nothing. Of such a one, nothing stays beside its file. */
function requireEmpty(path: string): void {
  if (inspect(path) && statSync(path).size > 0) {
    using locked: Locked = lockAlone(path, 'end it')
    const tables = locked.db.prepare('select name from sqlite_schema').values()
    const isEmpty =
      tables.length === 0 ||
      rowsOf<[bigint]>(
        locked.db
          .prepare(
            'select exists (select 1 from users) or exists (select 1 from tokens) or exists (select 1 from plants)',
          )
          .values(),
      )[0]?.[0] === 0n
    if (!isEmpty) throw storeUnusable(`The database ${path} is not empty: name another one.`)
    locked.release()
  }
  const beside = SIDE_FILES.map((name) => path + name).filter((file) => existsSync(file))
  if (beside.length > 0) throw storeUnusable(`${beside.join(' and ')} would be taken for a part of it: move that away.`)
}

/** Says what keeps a database from being made. What was read and failed has said so already. */
function toFillError(error: unknown, path: string): unknown {
  if (error instanceof AppError) return error
  if (isOutOfSpace(error)) return storeUnusable(`There is no space for the database ${path}: make room.`, error)
  return sqliteCode(error) === undefined
    ? error
    : storeUnusable(`The database ${path} cannot be made: ${String(error)}.`, error)
}
