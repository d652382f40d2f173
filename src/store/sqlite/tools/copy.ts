import type { Database, SQLQueryBindings } from 'bun:sqlite'
import { fileDamaged, storeUnusable } from '../../../engine/errors.ts'
import { insertInto, openReader } from '../../../engine/sqlite/driver.ts'
import { isOfSqlite, isOutOfSpace, toEngineError, toOpenError } from '../../../engine/sqlite/errors.ts'
import { findAndMark, markedIfDamaged } from '../../../engine/sqlite/files/damage-mark.ts'
import { lockAlone } from '../../../engine/sqlite/files/lock.ts'
import { createDatabase, ENTER_WAL_MODE } from '../../../engine/sqlite/files/new-database.ts'
import { inspect, refuseSideFiles } from '../../../engine/sqlite/files/preflight.ts'
import { findProblems, migrate } from '../../../engine/sqlite/migrate.ts'
import { COLUMNS } from '../../tables.ts'
import type { Source, Target } from '../../tools/contents.ts'
import { PLANT_FORMAT } from '../format.ts'
import { contentsOf, requireSchema } from './contents.ts'

/** `CopyTools.read` for SQLite. Without a snapshot no other process can open the database meanwhile. */
export async function readSqlite<T>(path: string, isSnapshot: boolean, use: (source: Source) => Promise<T>) {
  await requireSchema(path)
  try {
    using db = isSnapshot ? openReader(path) : lockAlone(path, 'end it, or use --snapshot')
    const problems = findAndMark(db, path, PLANT_FORMAT)
    if (problems.length > 0) throw fileDamaged('database', path, `is damaged: ${problems.join('; ')}`)
    return await use(contentsOf(db, path))
  } catch (error) {
    throw markedIfDamaged(toEngineError(error, path), path)
  }
}

/** `CopyTools.fill` for SQLite. The file gets its path once it is whole and on disk. */
export async function fillSqlite<T>(path: string, fill: (target: Target) => Promise<T>): Promise<T> {
  try {
    if (inspect(path, PLANT_FORMAT).exists) throw targetExists(path)
    refuseSideFiles(path)
    using created = createDatabase(path)
    migrate(created.db, path, PLANT_FORMAT)
    const result = await fill(targetOf(created.db, created.path))
    if (!created.publish(false)) throw targetExists(path)
    return result
  } catch (error) {
    // The other store may have failed, or a signal has come.
    throw isOfSqlite(error) || isOutOfSpace(error) ? toOpenError(error, path) : error
  }
}

/** All rows are written in one transaction. Then its file is opened again, so that it is read and not the cache. */
function targetOf(db: Database, path: string): Target {
  db.run('begin')
  return {
    async insert(table, rows) {
      // `query` caches the statement.
      const insert = db.query<unknown, SQLQueryBindings[]>(insertInto(table, Object.keys(COLUMNS[table])))
      for (const row of rows) insert.run(...row)
    },
    async read({ userId, tokenId }, use) {
      db.run('delete from sqlite_sequence')
      db.run(`insert into sqlite_sequence (name, seq) values ('users', ?1), ('tokens', ?2)`, [userId, tokenId])
      db.run('commit')
      db.close(true)
      using reopened = lockAlone(path)
      const problems = findProblems(reopened, PLANT_FORMAT)
      if (problems.length > 0) throw storeUnusable(`The copy is damaged: ${problems.join('; ')}.`)
      const result = await use(contentsOf(reopened, path))
      // The transaction of `contentsOf`.
      reopened.run('commit')
      reopened.run(ENTER_WAL_MODE)
      return result
    },
  }
}

const targetExists = (path: string) => storeUnusable(`${path} is there already: name another file.`)
