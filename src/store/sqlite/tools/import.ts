import type { Database, SQLQueryBindings } from 'bun:sqlite'
import { dirname } from 'node:path'
import type { Clocks } from '../../../clocks.ts'
import { type ConflictRule, PLANT_FIELDS, type PlantRow, valuesOf } from '../../../domain/plant.ts'
import { checkpoints } from '../../../engine/sqlite/checkpoints.ts'
import { prepareCommit } from '../../../engine/sqlite/commit.ts'
import { insertInto, openWriteConnection } from '../../../engine/sqlite/driver.ts'
import { isLocked, isOutOfSpace, toEngineError } from '../../../engine/sqlite/errors.ts'
import { movedAway, watchFiles } from '../../../engine/sqlite/files/moved-files.ts'
import { AppError } from '../../../error.ts'
import type { ExistingLine, FileTools, PlantImport } from '../../database.ts'
import { FIELD_COLUMNS, PLANT_COLUMNS } from '../../tables.ts'
import { requireSchema } from './contents.ts'

/**
 * A transaction ends with the plant that brings it to this time. A create of a server waits at most 100 ms for an import: for a
 * transaction, for its fsync, and until the server tries the lock again.
 */
const TRANSACTION_MS = 15
/** The pause after a transaction. Servers try the lock more often than this, so they get it then. */
const PAUSE_MS = 10
/** The longest wait for a lock, and the pause between two attempts. */
const LOCK_TIMEOUT_MS = 30_000
const LOCK_RETRY_MS = 3
const CACHE_KIB = 64 * 1024

/** Replaces the fields of a row by those of the row that would be inserted. */
const TAKE_NEW = PLANT_FIELDS.map((field) => `${field} = excluded.${field}`).join(', ')

type Key = readonly [user: string, id: bigint]
/** No user has an empty name. */
const BEFORE_ALL: Key = ['', 0n]

/** See `FileTools.importPlants`. */
export const importPlants =
  (path: string): FileTools['importPlants'] =>
  async (rule, { onRaised, ...clocks }, use) => {
    await requireSchema(path, onRaised)
    const { opened, areMoved } = watchFiles(path, () => openConnection(path))
    using db = opened
    const { add, findExisting } = stagingTable(db, path, rule)
    const begin = prepareBegin(db, path)
    const commit = prepareCommit(db, path)
    const { counts, writeUntil } = plantWriter(db, rule, clocks)

    async function* store(isAtomic: boolean) {
      // The transaction of the staging table.
      db.run('commit')
      let after: Key | undefined = BEFORE_ALL
      while (after !== undefined) {
        if (!db.inTransaction) await begin()
        after = writeUntil(clocks.monotonicMs() + TRANSACTION_MS, after)
        if (!isAtomic || after === undefined) {
          commit()
          if (areMoved()) throw new AppError('store_failed', { outcomeIsUnknown: true, cause: movedAway(path) })
          counts.durable = counts.written
          await Bun.sleep(PAUSE_MS)
        }
        yield counts
      }
    }
    await use({ add, findExisting, store })
  }

/** Opens a connection whose temporary file is beside the database. SQLite gives it no name, so that nothing of it is left. */
function openConnection(path: string): Database {
  const db = openWriteConnection(path, 'full')
  db.run('pragma busy_timeout = 0')
  // The disk of the database has room for the plants if any disk has.
  db.run(`pragma temp_store_directory = '${dirname(path).replaceAll("'", "''")}'`)
  db.run('pragma temp_store = file')
  db.run(`pragma temp.cache_size = -${CACHE_KIB}`)
  db.run(`create temp table lines (
      user text not null, id integer not null, ${PLANT_FIELDS.map((field) => `${field} text`).join(', ')},
      line integer not null, primary key (user, id)
    ) strict, without rowid`)
  db.prepare('select 1 from users').values()
  return db
}

function stagingTable(db: Database, path: string, rule: ConflictRule): Pick<PlantImport, 'add' | 'findExisting'> {
  const insert = db.prepare<unknown, SQLQueryBindings[]>(
    `${insertInto('temp.lines', ['line', 'user', 'id', ...PLANT_FIELDS])}
     on conflict do ${rule === 'replace' ? `update set ${TAKE_NEW}` : 'nothing'}`,
  )
  const selectLine = db.prepare<unknown, [...Key]>('select line from temp.lines where user = ?1 and id = ?2')
  // A cross join reads the lines first (https://sqlite.org/optoverview.html#crossjoin).
  const selectExisting = db.prepare<ExistingLine, []>(
    `select lines.line, lines.user, lines.id from temp.lines cross join main.users on users.name = lines.user
     cross join main.plants on plants.user_id = users.id and plants.id = lines.id order by lines.line`,
  )
  // One transaction for all lines, because a commit looks at every changed page that is in memory. It locks no other table.
  db.run('begin')
  return {
    add({ user, id, plant }, line) {
      try {
        const { changes } = insert.run(line, user, id, ...valuesOf(plant))
        return changes > 0 ? undefined : Number(selectLine.values(user, id)[0]?.[0])
      } catch (cause) {
        if (!isOutOfSpace(cause)) throw cause
        const message = `The lines wait in ${dirname(path)} until all are checked, and there is no room for them: nothing was imported. Make room, and run the same command again.`
        throw new AppError('store_full', { message, cause })
      }
    },
    findExisting: () => selectExisting.iterate(),
  }
}

/** Prepares the begin of a transaction. All other writes wait for its end. */
function prepareBegin(db: Database, path: string) {
  const wal = checkpoints(db, (error) => toEngineError(error, path))
  return async () => {
    const deadlineMs = performance.now() + LOCK_TIMEOUT_MS
    for (;;) {
      try {
        // If a checkpoint fails before the transaction, nothing is in doubt.
        wal.runIfDue()
        db.run('begin')
        // Takes the lock. `begin immediate` would lock the staging table, too, whose unlocking walks its pages.
        db.run('delete from main.users where false')
        return
      } catch (error) {
        if (db.inTransaction) db.run('rollback')
        if (!isLocked(error) || performance.now() > deadlineMs) throw error
      }
      // SQLite would wait inside a call, in which no signal is handled.
      await Bun.sleep(LOCK_RETRY_MS)
    }
  }
}

/** Writes and counts the plants of the staging table in the order of the table `plants`. Another order takes far longer. */
function plantWriter(db: Database, rule: ConflictRule, { nowMs, monotonicMs }: Clocks) {
  const prepare = (sql: string) => db.prepare<unknown, SQLQueryBindings[]>(sql)
  const selectAfter = db.prepare<Pick<ExistingLine, 'user' | 'id'> & PlantRow, [...Key]>(
    `select user, id, ${FIELD_COLUMNS} from temp.lines where (user, id) > (?1, ?2) order by user, id`,
  )
  const insertUser = prepare('insert into main.users (name, created_at_ms) values (?1, ?2) on conflict do nothing')
  const insertPlant = `insert into main.plants (${PLANT_COLUMNS.join(', ')})
    select users.id, ?2, ${PLANT_FIELDS.map((_, index) => `?${index + 3}`).join(', ')}
    from main.users where users.name = ?1 on conflict do`
  const createPlant = prepare(`${insertPlant} nothing`)
  const replacePlant = prepare(`${insertPlant} update set ${TAKE_NEW}`)
  const counts = { written: 0, durable: 0, users: 0, created: 0 }

  /** Writes the plants after a key, inside a transaction. If `endMs` comes first it returns the last key, else `undefined`. */
  const writeUntil = (endMs: number, after: Key): Key | undefined => {
    let lastUser = ''
    for (const row of selectAfter.iterate(...after)) {
      const { user, id } = row
      const values = valuesOf(row)
      if (user !== lastUser) counts.users += insertUser.run(user, nowMs()).changes
      lastUser = user
      const { changes } = createPlant.run(user, id, ...values)
      if (changes === 0 && rule === 'fail') throw new AppError('plant_exists')
      if (changes === 0 && rule === 'replace') replacePlant.run(user, id, ...values)
      counts.created += changes
      counts.written++
      if (monotonicMs() >= endMs) return [user, id]
    }
    return undefined
  }
  return { counts, writeUntil }
}
