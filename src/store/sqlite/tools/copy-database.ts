import { constants, type Database } from 'bun:sqlite'
import { openSync, renameSync, rmSync } from 'node:fs'
import { dirname } from 'node:path'
import { AppError } from '../../../domain/error.ts'
import { nextTurn } from '../../../domain/next-turn.ts'
import { type FileRole, fileDamaged, storeUnusable } from '../../errors.ts'
import type { CopyOptions, Counts } from '../../file-tools.ts'
import { BUSY_TIMEOUT_MS, openDatabase, rowsOf } from '../connection.ts'
import { isDamage, isLocked, isOutOfSpace } from '../errors.ts'
import { BACKUP_OF, recordPath } from '../files/backup-record.ts'
import { fileIdentity } from '../files/file-identity.ts'
import { createFile, renameToNew } from '../files/new-file.ts'
import { partialPath, syncDirectory } from '../files/partial-files.ts'
import { databaseEmpty } from '../files/preflight.ts'
import { refuseChangedSchema } from '../files/schema.ts'
import { findProblems } from '../health.ts'
import { APPLICATION_ID, pragmaNumber } from '../migrate.ts'

/** Rows that are copied at once: a few milliseconds, after which signals are heard. */
const BATCH_ROWS = 20_000

/** How it is read: as a database that others use, or as a file that nobody writes (https://sqlite.org/uri.html). */
const ACCESS: Readonly<Record<FileRole, string>> = { database: 'mode=rw', backup: 'immutable=1' }

/**
 * Copies a database, as it is at one moment, to a new file of `createFile` beside `target`, and verifies it: it is
 * whole, and has as many rows as there were at that moment. Not by `vacuum into`, which does not sync what it writes, can
 * not be stopped, and does not tell how many rows it has read. Rejects with `store_unusable` where the database is not
 * whole, with `file_unusable` where the copy cannot be made; then nothing is left of it.
 */
export async function copyDatabase(role: FileRole, source: string, target: string, options: CopyOptions = {}) {
  const partial = partialPath(target)
  let copy: Database | undefined
  let isPlaced = false
  let identity: string | undefined
  const requireOurs = () => {
    if (fileIdentity(partial) !== identity) throw cannotMake(target, 'somebody has taken it away meanwhile')
  }
  const place = (rename: () => void) => {
    requireOurs()
    rename()
    isPlaced = true
    syncDirectory(dirname(target))
  }
  const discard = () => {
    copy?.close(true)
    if (!isPlaced) rmSync(partial, { force: true })
  }
  try {
    createFile(partial, options.force === true ? target : undefined)
    identity = fileIdentity(partial)
    copy = openCopy(partial)
    copy.run('attach ?1 as source', [`${Bun.pathToFileURL(source).href}?${ACCESS[role]}`])
    const { expected, dropped } = await copyAll(copy, role, source, options)
    copy.run('detach source')
    const counts = verify(copy, role, source, expected)
    return {
      counts,
      /** What the copy lacks. */
      dropped,
      /** Gives it its name, durably, at one moment. A file of that name is replaced. */
      replace: () => place(() => renameSync(partial, target)),
      /** The same, but throws `isThere` if a file has that name by now. */
      placeNew: (isThere: AppError) =>
        place(() => {
          if (!renameToNew(partial, target)) throw isThere
        }),
      /** Opens it for reading. It can be read to its end after it has lost its name. */
      open(): number {
        requireOurs()
        return openSync(partial, 'r')
      },
      /** Ends its use. Without a name nothing stays of it. */
      [Symbol.dispose]: discard,
    }
  } catch (error) {
    discard()
    throw toCopyError(error, role, source, target)
  }
}

/**
 * The connection that writes the copy, and locks it until it is closed: so whoever finds it knows that it is being made. Its
 * journal is needed by nobody: what is not whole is thrown away. What is committed is synced.
 */
function openCopy(path: string): Database {
  const db = openDatabase(path, constants.SQLITE_OPEN_READWRITE | constants.SQLITE_OPEN_URI)
  db.run(`pragma busy_timeout = ${BUSY_TIMEOUT_MS}`)
  db.run('pragma main.locking_mode = exclusive')
  db.run('pragma main.journal_mode = memory')
  db.run('pragma main.synchronous = full')
  db.run('pragma fullfsync = 1')
  return db
}

/**
 * Copies the schema and all rows, in one transaction, which reads what is there at its beginning. Of a backup, which may come
 * from anybody, it copies no objects of other programs. Returns the counts, and these objects.
 */
async function copyAll(copy: Database, role: FileRole, source: string, { onProgress = () => {}, signal }: CopyOptions) {
  copy.run('begin')
  if (pragmaNumber(copy, 'application_id', 'source') !== APPLICATION_ID) {
    throw databaseEmpty(source)
  }
  const foreign = refuseChangedSchema(role, source, copy, pragmaNumber(copy, 'user_version', 'source'), 'source')
  const dropped = role === 'backup' ? foreign : []
  const droppedNames = new Set(dropped.map(({ name }) => name))
  const schema = rowsOf<[type: string, name: string, sql: string]>(
    copy.prepare('select type, name, sql from source.sqlite_schema where sql is not null order by rowid').values(),
  ).filter(([, name]) => !name.startsWith('sqlite_') && name !== BACKUP_OF && !droppedNames.has(name))
  for (const pragma of ['application_id', 'user_version'] as const) {
    copy.run(`pragma main.${pragma} = ${pragmaNumber(copy, pragma, 'source')}`)
  }
  const tables = schema.filter(([type]) => type === 'table')
  // `prepare` takes the first statement of a text alone, `run` would take all.
  for (const [, , sql] of tables) copy.prepare(sql).run()
  const counts = countRows(copy, 'source')
  let plants = 0
  for (const [, table] of tables) {
    for (const rows of copyTable(copy, table)) {
      signal?.throwIfAborted()
      if (table === 'plants') {
        plants += rows
        onProgress(plants, counts.plants)
      }
      await nextTurn()
    }
  }
  if (copy.prepare(`select 1 from source.sqlite_schema where name = 'sqlite_stat1'`).values().length > 0) {
    // SQLite alone can make the table that an `analyze` fills.
    copy.run('analyze main.sqlite_schema')
    copy.run('insert into main.sqlite_stat1 select tbl, idx, stat from source.sqlite_stat1')
  }
  // The numbers that were given already: they are never given twice.
  copy.run('delete from main.sqlite_sequence')
  copy.run('insert into main.sqlite_sequence select * from source.sqlite_sequence')
  // Indexes are made faster, and denser, when the rows are there.
  for (const [type, , sql] of schema) if (type !== 'table') copy.prepare(sql).run()
  if (role === 'database') recordPath(copy, source)
  copy.run('commit')
  return { expected: counts, dropped }
}

/** Copies the rows of a table, in batches by its primary key. Yields how many each batch has. */
function* copyTable(copy: Database, table: string): Generator<number> {
  const key = copy
    .prepare(`select name from pragma_table_info(?1, 'main') where pk > 0 order by pk`)
    .values(table)
    .flat()
  if (key.length === 0) {
    yield copy.run(`insert into main.${quoted(table)} select * from source.${quoted(table)}`).changes
    return
  }
  const columns = key.map((name) => quoted(String(name))).join(', ')
  const last = key.map((name) => `${quoted(String(name))} desc`).join(', ')
  const insert = `insert into main.${quoted(table)} select * from source.${quoted(table)}`
  const batch = `order by ${columns} limit ${BATCH_ROWS}`
  const first = copy.run(`${insert} ${batch}`).changes
  yield first
  if (first < BATCH_ROWS) return
  const next = copy.prepare(`${insert}
    where (${columns}) > (select ${columns} from main.${quoted(table)} order by ${last} limit 1) ${batch}`)
  for (;;) {
    const { changes } = next.run()
    yield changes
    if (changes < BATCH_ROWS) return
  }
}

/** Whether what is in the file is whole, and all of it. */
function verify(copy: Database, role: FileRole, source: string, expected: Counts): Counts {
  // What is in memory tells nothing of the file.
  copy.run('pragma shrink_memory')
  const problems = findProblems(copy)
  if (problems.length > 0) throw damaged(role, source, problems)
  refuseChangedSchema(role, source, copy, pragmaNumber(copy, 'user_version'))
  const counts = countRows(copy, 'main')
  if (!Bun.deepEquals(counts, expected)) {
    throw new Error(`of ${JSON.stringify(expected)} rows the copy has ${JSON.stringify(counts)}`)
  }
  return counts
}

const countRows = (db: Database, schema: 'main' | 'source'): Counts => {
  const [[users, tokens, plants] = [0, 0, 0]] = rowsOf<[number, number, number]>(
    db
      .prepare(
        `select (select count(*) from ${schema}.users), (select count(*) from ${schema}.tokens),
           (select count(*) from ${schema}.plants)`,
      )
      .values(),
  )
  return { users, tokens, plants }
}

/** Says what keeps a copy from being made in the terms of whoever asked for it. */
function toCopyError(error: unknown, role: FileRole, source: string, target: string): unknown {
  if (error instanceof AppError) return error
  if (isDamage(error)) return damaged(role, source, [String(error)])
  if (isLocked(error)) return storeUnusable(`The database ${source} is locked by another process: try again.`, error)
  if (isOutOfSpace(error)) return cannotMake(target, 'there is no space: make room', error)
  const isOfSystem = error instanceof Error && 'code' in error
  return isOfSystem ? cannotMake(target, error.message, error) : error
}

const damaged = (role: FileRole, source: string, problems: readonly string[]) =>
  fileDamaged(role, source, `is damaged: ${problems.join('; ')}`)

/** Why a file that somebody wants cannot be made. */
const cannotMake = (target: string, reason: string, cause?: unknown) =>
  new AppError('file_unusable', { message: `${target} cannot be made: ${reason}.`, cause })

/** An identifier in SQL, whatever is in it. */
const quoted = (name: string): string => `"${name.replaceAll('"', '""')}"`
