import type { Database, SQLQueryBindings } from 'bun:sqlite'
import { dirname } from 'node:path'
import { AppError } from '../../../domain/error.ts'
import type { ConflictRule, OwnedPlant } from '../../../domain/plant.ts'
import { PLANT_FIELDS, valuesOf } from '../../../domain/plant.ts'
import { PLANT_COLUMNS } from '../../rows.ts'
import { openWriter, rowsOf } from '../connection.ts'
import { toAppError } from '../errors.ts'
import { watchFiles } from '../files/moved-files.ts'
import { insertInto } from '../insert.ts'
import { checkpoints } from '../writing/checkpoints.ts'
import { prepareCommit } from '../writing/commit.ts'
import { updateSchema } from './contents.ts'

/** The longest wait for a lock, and the pause between two attempts. */
const LOCK_TIMEOUT_MS = 30_000
const LOCK_RETRY_MS = 3
/** The most memory of the staging table, in KiB. */
const CACHE_KIB = 64 * 1024
/** A batch ends with the plant that reaches one of these limits. The second one is the length of its text, in bytes. */
const BATCH_PLANTS = 500
const BATCH_TEXT_BYTES = 1024 * 1024

/** Replaces the fields of a row by those of the row that would be inserted. */
const TAKE_NEW = PLANT_FIELDS.map((field) => `${field} = excluded.${field}`).join(', ')

type Key = readonly [user: string, id: bigint]

/** Some plants of the staging table: those after one key, up to another key. */
interface ImportBatch {
  readonly plants: number
  readonly after: Key
  readonly last: Key
}

/** What an import did. */
interface ImportCounts {
  /** New users. */
  readonly users: number
  readonly created: number
  readonly skipped: number
  readonly replaced: number
}

/**
 * Opens a database to import plants. All plants wait in a staging table until they are written. Of
 * several plants with the same user and id it keeps the last one with `replace`, else the first one. Servers may use the database
 * meanwhile. All methods fail as the writes of a `Store` do. `dispose` rolls back what was not committed.
 */
export async function openImport(path: string, rule: ConflictRule, nowMs: () => number) {
  await updateSchema(path)
  const directory = dirname(path)
  const translate = (error: unknown) => toAppError(error, { duringWrite: true, path })
  const attempt = <T>(work: () => T): T => {
    try {
      return work()
    } catch (error) {
      throw translate(error)
    }
  }
  const { opened: db, areMoved } = attempt(() => watchFiles(path, () => openConnection(path, directory)))
  const wal = checkpoints(db, translate)
  const staging = stagingTable(db, rule)
  const { findExisting, write } = plantWriter(db, rule, nowMs)
  const commit = prepareCommit(db)

  const attemptLocked = <T>(work: () => T): Promise<T> => untilUnlocked(db, () => attempt(work))

  return {
    /** Where the file of the staging table is. */
    directory,
    /** Adds a plant to the staging table. Returns the line of an earlier plant with its user and id, if there is one. */
    add: (plant: OwnedPlant, line: number) => attempt(() => staging.add(plant, line)),
    /** No plant is added after this. */
    endAdding: () => attempt(() => db.run('commit')),
    /** All plants in batches, in the order of the table `plants`, because writing in another order takes many times as long. */
    batches: () => batchesOf((after) => attempt(() => staging.batchAfter(after))),
    /** Returns those plants of a batch whose ids their users already have. */
    findExisting: (batch: ImportBatch) => attemptLocked(() => findExisting(batch)),
    /** Begins a transaction. All other writes wait until `commit`. */
    begin: () =>
      attemptLocked(() => {
        // If a checkpoint fails before the transaction, nothing is in doubt.
        wal.runIfDue()
        db.run('begin')
        // Takes the lock. `begin immediate` would lock the staging table, too, whose unlocking walks its pages.
        db.run('delete from main.users where false')
      }),
    /** Writes the plants of a batch, and their users if they are new. With `fail` it throws `plant_exists`. */
    write: (batch: ImportBatch): ImportCounts => attempt(() => write(batch)),
    /** Makes all batches since `begin` durable. */
    commit: () =>
      attempt(() => {
        commit()
        if (!areMoved()) return
        const cause = new Error(`${path}, or a file beside it, was moved, replaced or deleted`)
        throw new AppError('store_failed', { outcomeIsUnknown: true, cause })
      }),
    [Symbol.dispose]() {
      if (db.inTransaction) db.run('rollback')
      db.close(true)
    },
  }
}

function* batchesOf(batchAfter: (after: Key) => ImportBatch): Generator<ImportBatch> {
  // No user has an empty name.
  let after: Key = ['', 0n]
  for (;;) {
    const batch = batchAfter(after)
    if (batch.plants === 0) return
    yield batch
    after = batch.last
  }
}

/** Repeats work that finds the database locked. SQLite would wait inside a call, in which no signal is handled. */
async function untilUnlocked<T>(db: Database, work: () => T): Promise<T> {
  const deadlineMs = performance.now() + LOCK_TIMEOUT_MS
  for (;;) {
    try {
      return work()
    } catch (error) {
      if (db.inTransaction) db.run('rollback')
      const isBusy = error instanceof AppError && error.kind === 'store_busy'
      if (!isBusy || performance.now() > deadlineMs) throw error
      await Bun.sleep(LOCK_RETRY_MS)
    }
  }
}

/** Opens a connection whose temporary file is in this directory. SQLite gives that file no name, so that nothing of it is left. */
function openConnection(path: string, directory: string): Database {
  const db = openWriter(path, 'full', { create: false })
  db.run('pragma busy_timeout = 0')
  // The disk of the database has room for the plants if any disk has.
  db.run(`pragma temp_store_directory = '${directory.replaceAll("'", "''")}'`)
  db.run('pragma temp_store = file')
  db.run(`pragma temp.cache_size = -${CACHE_KIB}`)
  db.run(`create temp table lines (
      user text not null, id integer not null, ${PLANT_FIELDS.map((field) => `${field} text`).join(', ')},
      line integer not null, primary key (user, id)
    ) strict, without rowid`)
  db.prepare('select 1 from users').values()
  return db
}

function stagingTable(db: Database, rule: ConflictRule) {
  const insert = db.prepare<unknown, SQLQueryBindings[]>(
    `${insertInto('temp.lines', ['line', 'user', 'id', ...PLANT_FIELDS])}
     on conflict do update set ${rule === 'replace' ? TAKE_NEW : 'line = line'} returning line`,
  )
  const selectNext = db.prepare<unknown, SQLQueryBindings[]>(
    `select user, id, ${PLANT_FIELDS.map((field) => `coalesce(octet_length(${field}), 0)`).join(' + ')}
     from temp.lines where (user, id) > (?1, ?2) order by user, id limit ${BATCH_PLANTS}`,
  )

  // One transaction for all lines, because a commit looks at every changed page that is in memory. It locks no other table.
  db.run('begin')
  return {
    add(plant: OwnedPlant, line: number): number | undefined {
      const [[kept] = []] = insert.values(line, plant.user, plant.id, ...valuesOf(plant))
      return Number(kept) === line ? undefined : Number(kept)
    },
    batchAfter(after: Key): ImportBatch {
      let last = after
      let plants = 0
      let bytes = 0
      for (const [user, id, textBytes] of rowsOf<[...Key, bigint]>(selectNext.values(...after))) {
        last = [user, id]
        plants++
        bytes += Number(textBytes)
        if (bytes >= BATCH_TEXT_BYTES) break
      }
      return { plants, after, last }
    },
  }
}

/** Finds and writes the plants of a batch, inside a transaction. */
function plantWriter(db: Database, rule: ConflictRule, nowMs: () => number) {
  const prepare = (sql: string) => db.prepare<unknown, SQLQueryBindings[]>(sql)
  const range = 'where (lines.user, lines.id) > (?1, ?2) and (lines.user, lines.id) <= (?3, ?4)'
  // A cross join reads the batch first (https://sqlite.org/optoverview.html#crossjoin).
  const ofUsers = 'from temp.lines cross join main.users on users.name = lines.user'
  const insertUsers = prepare(
    `insert into main.users (name, created_at_ms) select distinct user, ?5 from temp.lines ${range} on conflict do nothing`,
  )
  const selectExisting = prepare(
    `select lines.line, lines.user, lines.id ${ofUsers}
     cross join main.plants on plants.user_id = users.id and plants.id = lines.id ${range}`,
  )
  const insertPlants = prepare(
    `insert into main.plants (${PLANT_COLUMNS.join(', ')})
     select users.id, lines.id, ${PLANT_FIELDS.map((field) => `lines.${field}`).join(', ')} ${ofUsers} ${range}
     order by lines.user, lines.id on conflict do ${rule === 'replace' ? `update set ${TAKE_NEW}` : 'nothing'}`,
  )

  const findExisting = ({ after, last }: ImportBatch) =>
    rowsOf<[line: bigint, ...Key]>(selectExisting.values(...after, ...last)).map(([line, user, id]) => {
      return { line: Number(line), user, id }
    })

  const write = (batch: ImportBatch): ImportCounts => {
    const keys = [...batch.after, ...batch.last]
    const users = insertUsers.run(...keys, nowMs()).changes
    const existing = findExisting(batch)
    const [first] = existing
    if (first !== undefined && rule === 'fail') {
      throw new AppError('plant_exists', { message: `The user ${first.user} has got plant ${first.id} meanwhile.` })
    }
    insertPlants.run(...keys)
    const [skipped, replaced] = rule === 'replace' ? [0, existing.length] : [existing.length, 0]
    return { users, created: batch.plants - existing.length, skipped, replaced }
  }
  return { findExisting, write }
}
