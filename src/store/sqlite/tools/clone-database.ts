import type { Database } from 'bun:sqlite'
import { existsSync, statSync } from 'node:fs'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { AppError, misused } from '../../../domain/error.ts'
import type { Copied, CopyOptions, Counts } from '../../engine.ts'
import { type FileRole, fileDamaged, storeUnusable } from '../../errors.ts'
import { rowsOf } from '../connection.ts'
import { isDamage, isLocked, isOutOfSpace, sqliteCode, toOpenError } from '../errors.ts'
import { fileIdentity } from '../files/file-system.ts'
import { closeForReplacement, lockAlone } from '../files/lock.ts'
import { databaseEmpty, inspect, refuseSideFiles, restingState } from '../files/preflight.ts'
import { BACKUP_OF, type Definition, describeObjects, refuseChangedSchema } from '../files/schema.ts'
import { findProblems } from '../health.ts'
import { APPLICATION_ID, pragmaNumber } from '../migrate.ts'
import { countRows } from './contents.ts'
import { createDatabase, type NewDatabase } from './new-database.ts'

/** How SQLite opens the source: other processes use a database, and nobody writes to a backup (https://sqlite.org/uri.html). */
const ACCESS: Readonly<Record<FileRole, string>> = { database: 'mode=rw', backup: 'immutable=1' }
/** Copying so many rows takes a few milliseconds. After each batch, signals are handled. */
const BATCH_ROWS = 20_000

/** A database to copy. Its schema was inspected. */
interface Source {
  readonly role: FileRole
  readonly path: string
  /** The objects in it that are not copied. */
  readonly dropped: readonly Definition[]
  /** The resting state of a backup, which must not change meanwhile. */
  readonly state?: string
}

/**
 * Copies a database, as it is at one moment, to `target`. The file gets that name once the copy is verified and on disk. Rejects
 * as `withCopy` does. Also rejects and changes nothing if there is a file, unless `force` is true and the file is a database that
 * no process has open.
 */
export async function copyDatabase(source: Source, target: string, options: CopyOptions): Promise<Copied> {
  if (fileIdentity(source.path) === fileIdentity(target)) {
    throw misused(`${target} is the ${source.role} itself: name another file.`)
  }
  using replaced = lockTarget(target, options)
  return await withCopy(source, target, options, ({ copied, place }) => {
    if (source.state !== undefined && restingState(source.path) !== source.state) {
      throw storeUnusable(`${source.path} was written to meanwhile: make a backup of it by plantstore backup.`)
    }
    if (replaced !== undefined) closeForReplacement(replaced)
    if (!place(replaced !== undefined)) throw targetExists(target)
    return { ...copied, path: target, bytes: statSync(target).size }
  })
}

/** Locks the database that is to be replaced. Returns `undefined` if there is none. */
function lockTarget(target: string, { force = false }: CopyOptions): Database | undefined {
  if (!force && existsSync(target) && statSync(target).isFile()) throw targetExists(target)
  if (inspect(target).exists) return lockAlone(target)
  refuseSideFiles(target)
  return undefined
}

const targetExists = (target: string) =>
  new AppError('file_unusable', { message: `${target} is there already: name another file, or replace it by --force.` })

/**
 * Copies a database, as it is at one moment, to a new file beside `target`, verifies the copy, and passes it to `use`. Rejects
 * with `store_unusable` if the source is damaged, and with `file_unusable` if the copy cannot be made. Nothing of a copy is left
 * that `use` does not give its name.
 *
 * It does not use `vacuum into`, which does not sync its file, cannot be stopped, and does not say how many rows it has read.
 */
export async function withCopy<T>(
  source: Source,
  target: string,
  options: CopyOptions,
  use: (copy: NewDatabase & { readonly copied: Omit<Copied, 'path' | 'bytes'> }) => T,
): Promise<T> {
  try {
    using copy = createDatabase(target)
    copy.db.run('attach ?1 as source', [`${Bun.pathToFileURL(source.path).href}?${ACCESS[source.role]}`])
    const expected = await copyRows(copy.db, source, options)
    copy.db.run('detach source')
    const counts = verify(copy.db, source, expected)
    return use({ ...copy, copied: { ...counts, dropped: describeObjects(source.dropped) } })
  } catch (error) {
    throw toCopyError(error, source, target)
  }
}

/** Copies the schema and all rows of the attached database `source` in one transaction. Returns the counts of the source. */
async function copyRows(
  copy: Database,
  { role, path, dropped }: Source,
  { onProgress = () => {}, signal }: CopyOptions,
): Promise<Counts> {
  copy.run('begin')
  if (pragmaNumber(copy, 'application_id', 'source') !== APPLICATION_ID) throw databaseEmpty(path)
  const schema = schemaToCopy(copy, new Set(dropped.map(([, name]) => name)))
  const tables = schema.filter(({ type }) => type === 'table')
  for (const pragma of ['application_id', 'user_version'] as const) {
    copy.run(`pragma main.${pragma} = ${pragmaNumber(copy, pragma, 'source')}`)
  }
  // `prepare` takes only the first statement of a text. `run` would execute all of them.
  for (const { sql } of tables) copy.prepare(sql).run()
  const expected = countRows(copy, 'source')
  for (const { name } of tables) {
    // The copy was never backed up.
    if (name !== 'plants' && name !== 'last_backup')
      copy.run(`insert into main.${quoted(name)} select * from source.${quoted(name)}`)
  }
  let plants = 0
  for (const rows of copyPlants(copy)) {
    signal?.throwIfAborted()
    plants += rows
    onProgress(plants, expected.plants)
    await nextTurn()
  }
  copyInternalTables(copy)
  // SQLite makes an index faster, and denser, once the rows are there.
  for (const { type, sql } of schema) if (type !== 'table') copy.prepare(sql).run()
  if (role === 'database') {
    copy.run(`create table main.${BACKUP_OF} (path text not null) strict`)
    copy.run(`insert into main.${BACKUP_OF} (path) values (?1)`, [path])
  }
  copy.run('commit')
  return expected
}

const schemaToCopy = (copy: Database, dropped: ReadonlySet<string>) =>
  rowsOf<[type: string, name: string, sql: string]>(
    copy.prepare('select type, name, sql from source.sqlite_schema where sql is not null order by rowid').values(),
  )
    .map(([type, name, sql]) => ({ type, name, sql }))
    .filter(({ name }) => !name.startsWith('sqlite_') && name !== BACKUP_OF && !dropped.has(name))

/** Copies the plants in batches by their key. Yields the size of each batch. */
function* copyPlants(copy: Database): Generator<number> {
  let condition = ''
  for (;;) {
    const { changes } = copy.run(
      `insert into main.plants select * from source.plants ${condition} order by user_id, id limit ${BATCH_ROWS}`,
    )
    yield changes
    if (changes < BATCH_ROWS) return
    condition = 'where (user_id, id) > (select user_id, id from main.plants order by user_id desc, id desc limit 1)'
  }
}

/** Copies what SQLite keeps for itself: the statistics of `analyze`, and the last identifiers, which are never used again. */
function copyInternalTables(copy: Database): void {
  if (copy.prepare(`select 1 from source.sqlite_schema where name = 'sqlite_stat1'`).values().length > 0) {
    // Only SQLite can make this table.
    copy.run('analyze main.sqlite_schema')
    copy.run('insert into main.sqlite_stat1 select tbl, idx, stat from source.sqlite_stat1')
  }
  copy.run('delete from main.sqlite_sequence')
  copy.run('insert into main.sqlite_sequence select * from source.sqlite_sequence')
}

/** Any name as an identifier in SQL. */
const quoted = (name: string): string => `"${name.replaceAll('"', '""')}"`

/** Throws if the file is damaged or lacks a row, or if another program has changed the schema since it was inspected. */
function verify(copy: Database, source: Source, expected: Counts): Counts {
  // Read the file itself, and not the cache.
  copy.run('pragma shrink_memory')
  const problems = findProblems(copy)
  if (problems.length > 0) throw fileDamaged(source.role, source.path, `is damaged: ${problems.join('; ')}`)
  refuseChangedSchema(source.role, source.path, copy, pragmaNumber(copy, 'user_version'))
  const counts = countRows(copy)
  if (!Bun.deepEquals(counts, expected)) {
    throw new Error(`of ${JSON.stringify(expected)} rows the copy has ${JSON.stringify(counts)}`)
  }
  return counts
}

function toCopyError(error: unknown, source: Source, target: string): unknown {
  // The file of the copy is open already, and nobody else knows it.
  const isOfSource = isDamage(error) || isLocked(error) || sqliteCode(error) === 'SQLITE_CANTOPEN'
  if (isOfSource) return toOpenError(error, source.path, source.role)
  const isSystemError = error instanceof Error && !(error instanceof AppError) && 'code' in error
  if (!isSystemError) return error
  const reason = isOutOfSpace(error) ? 'there is no space: make room' : error.message
  return new AppError('file_unusable', { message: `${target} cannot be made: ${reason}.`, cause: error })
}
