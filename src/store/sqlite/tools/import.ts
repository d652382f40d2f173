import type { Database, SQLQueryBindings } from 'bun:sqlite'
import { dirname } from 'node:path'
import { AppError } from '../../../domain/error.ts'
import type { ConflictRule, OwnedPlant } from '../../../domain/plant.ts'
import { PLANT_FIELDS, valuesOf } from '../../../domain/plant.ts'
import type { ExistingLine, FileTools, PlantImport } from '../../engine.ts'
import { PLANT_COLUMNS } from '../../rows.ts'
import { openWriter, rowsOf } from '../driver.ts'
import { toAppError } from '../errors.ts'
import { movedAway, watchFiles } from '../files/moved-files.ts'
import { insertInto } from '../insert.ts'
import { checkpoints } from '../writing/checkpoints.ts'
import { prepareCommit } from '../writing/commit.ts'
import { updateSchema } from './contents.ts'

/**
 * A transaction ends with the batch that brings it to this time. A create of a server waits at most 100 ms for an import: for a
 * transaction, for its fsync, and until the server tries the lock again.
 */
const TRANSACTION_MS = 15
/** The pause after a transaction. Servers try the lock more often than this, so they get it then. */
const PAUSE_MS = 10
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
/** A cross join reads the lines first (https://sqlite.org/optoverview.html#crossjoin). */
const OF_USERS = 'from temp.lines cross join main.users on users.name = lines.user'
const EXISTING = `${OF_USERS} cross join main.plants on plants.user_id = users.id and plants.id = lines.id`
const IN_BATCH = 'where (lines.user, lines.id) > (?1, ?2) and (lines.user, lines.id) <= (?3, ?4)'

type Key = readonly [user: string, id: bigint]
/** No user has an empty name. */
const BEFORE_ALL: Key = ['', 0n]

/** Some plants of the staging table: those after one key, up to another key. */
interface ImportBatch {
  readonly plants: number
  readonly after: Key
  readonly last: Key
}

/** See `FileTools.openImport`. Servers may use the database meanwhile. */
export async function openImport(
  path: string,
  rule: ConflictRule,
  { nowMs, monotonicMs }: Parameters<FileTools['openImport']>[1],
): Promise<PlantImport> {
  await updateSchema(path)
  const translate = (error: unknown) => toAppError(error, path, { duringWrite: true })
  const { opened: db, areMoved } = attempt(translate, () => watchFiles(path, () => openConnection(path)))
  const begin = prepareBegin(db, translate)
  const commit = prepareCommit(db)
  const staging = stagingTable(db, rule)
  const { counts, write } = plantWriter(db, rule, nowMs)
  const end = () => {
    commit()
    if (areMoved()) throw new AppError('store_failed', { outcomeIsUnknown: true, cause: movedAway(path) })
    counts.durable = counts.written
  }

  return {
    counts,
    add: (plant, line) =>
      attempt(
        (error) => toStagingError(translate(error), dirname(path)),
        () => staging.add(plant, line),
      ),
    findExisting: (use) => attempt(translate, () => staging.findExisting(use)),
    async *store(isAtomic) {
      let beginMs = 0
      try {
        for (const batch of staging.batches()) {
          if (!db.inTransaction) {
            await begin()
            beginMs = monotonicMs()
          }
          write(batch)
          if (!isAtomic && monotonicMs() - beginMs >= TRANSACTION_MS) {
            end()
            await Bun.sleep(PAUSE_MS)
          }
          yield counts.written
        }
        if (db.inTransaction) end()
      } catch (error) {
        throw translate(error)
      }
    },
    [Symbol.dispose]() {
      if (db.inTransaction) db.run('rollback')
      db.close(true)
    },
  }
}

/** Translates the error with which work fails. */
function attempt<T>(translate: (error: unknown) => unknown, work: () => T): T {
  try {
    return work()
  } catch (error) {
    throw translate(error)
  }
}

/** Prepares the begin of a transaction. All other writes wait for its end. */
function prepareBegin(db: Database, translate: (error: unknown) => unknown) {
  const wal = checkpoints(db, translate)
  const begin = () => {
    // If a checkpoint fails before the transaction, nothing is in doubt.
    wal.runIfDue()
    db.run('begin')
    // Takes the lock. `begin immediate` would lock the staging table, too, whose unlocking walks its pages.
    db.run('delete from main.users where false')
  }
  return () => untilUnlocked(db, () => attempt(translate, begin))
}

/** Says where there is no room for the staging table. Nothing else is written then. */
function toStagingError(error: unknown, directory: string): unknown {
  if (!(error instanceof AppError && error.kind === 'store_full')) return error
  const message = `The lines wait in ${directory} until all are checked, and there is no room for them: nothing was imported. Make room, and run the same command again.`
  return new AppError('store_full', { message, cause: error.cause })
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

/** Opens a connection whose temporary file is beside the database. SQLite gives that file no name, so that nothing of it is left. */
function openConnection(path: string): Database {
  const db = openWriter(path, 'full', { create: false })
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

function stagingTable(db: Database, rule: ConflictRule) {
  const insert = db.prepare<unknown, SQLQueryBindings[]>(
    `${insertInto('temp.lines', ['line', 'user', 'id', ...PLANT_FIELDS])}
     on conflict do update set ${rule === 'replace' ? TAKE_NEW : 'line = line'} returning line`,
  )
  const selectNext = db.prepare<unknown, SQLQueryBindings[]>(
    `select user, id, ${PLANT_FIELDS.map((field) => `coalesce(octet_length(${field}), 0)`).join(' + ')}
     from temp.lines where (user, id) > (?1, ?2) order by user, id limit ${BATCH_PLANTS}`,
  )
  const selectExisting = db.prepare<ExistingLine, []>(
    `select lines.line, lines.user, lines.id ${EXISTING} order by lines.line`,
  )

  const batchAfter = (after: Key): ImportBatch => {
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
  }

  // One transaction for all lines, because a commit looks at every changed page that is in memory. It locks no other table.
  db.run('begin')
  return {
    add({ user, id, plant }: OwnedPlant, line: number): number | undefined {
      const [[kept] = []] = insert.values(line, user, id, ...valuesOf(plant))
      return Number(kept) === line ? undefined : Number(kept)
    },
    findExisting(use: (line: ExistingLine) => void): void {
      for (const line of selectExisting.iterate()) use(line)
    },
    /** Ends the transaction of the lines. All batches, in the order of the table `plants`: another order takes many times as long. */
    *batches(): Generator<ImportBatch> {
      db.run('commit')
      for (let batch = batchAfter(BEFORE_ALL); batch.plants > 0; batch = batchAfter(batch.last)) yield batch
    },
  }
}

/** Writes the plants of a batch, inside a transaction, and counts them. */
function plantWriter(db: Database, rule: ConflictRule, nowMs: () => number) {
  const prepare = (sql: string) => db.prepare<unknown, SQLQueryBindings[]>(sql)
  const insertUsers = prepare(
    `insert into main.users (name, created_at_ms) select distinct user, ?5 from temp.lines ${IN_BATCH} on conflict do nothing`,
  )
  const countExisting = prepare(`select count(*) ${EXISTING} ${IN_BATCH}`)
  const insertPlants = prepare(
    `insert into main.plants (${PLANT_COLUMNS.join(', ')})
     select users.id, lines.id, ${PLANT_FIELDS.map((field) => `lines.${field}`).join(', ')} ${OF_USERS} ${IN_BATCH}
     order by lines.user, lines.id on conflict do ${rule === 'replace' ? `update set ${TAKE_NEW}` : 'nothing'}`,
  )

  const counts = { written: 0, durable: 0, users: 0, created: 0 }
  const write = ({ plants, after, last }: ImportBatch): void => {
    const keys = [...after, ...last]
    counts.users += insertUsers.run(...keys, nowMs()).changes
    const existing = Number(countExisting.values(...keys)[0]?.[0])
    if (existing > 0 && rule === 'fail') throw new AppError('plant_exists')
    insertPlants.run(...keys)
    counts.written += plants
    counts.created += plants - existing
  }
  return { counts, write }
}
