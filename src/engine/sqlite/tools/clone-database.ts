// Tested in test/cli/transcripts/backup-restore.txt.
import type { Database } from 'bun:sqlite'
import { existsSync, statSync } from 'node:fs'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { AppError, codeOf } from '../../../error.ts'
import { type FileRole, fileDamaged } from '../../errors.ts'
import { openLocked, rowsOf } from '../driver.ts'
import { isDamage, isLocked, isOutOfSpace, isUnshared, toOpenError } from '../errors.ts'
import { damageFound, findDamage } from '../files/damage-mark.ts'
import { fileIdentity } from '../files/file-system.ts'
import { lockAlone, removeSideFiles, removeUnshared } from '../files/lock.ts'
import { createDatabase, ENTER_WAL_MODE, type NewDatabase } from '../files/new-database.ts'
import { databaseEmpty, inspect, refuseSideFiles, requireResting } from '../files/preflight.ts'
import { BACKUP_OF, type Definition, describeObjects, refuseChangedSchema } from '../files/schema.ts'
import type { Counts, Format } from '../format.ts'
import { pragmaNumber } from '../migrate.ts'

/** Cloning so many rows takes a few milliseconds. After each batch, signals are handled. */
const BATCH_ROWS = 20_000

/** A database to clone. Its schema was inspected. */
export interface Source<C extends Counts = Counts> {
  readonly format: Format<C>
  readonly role: FileRole
  readonly path: string
  /** The objects in it that are not cloned. */
  readonly dropped: readonly Definition[]
  /** The resting state of a file that nobody writes to (https://sqlite.org/uri.html). It must not change meanwhile. */
  readonly state?: string | undefined
}

/** How to watch and stop a clone. If the signal stops it, nothing of it is left, and it rejects with the signal's reason. */
export interface CloneOptions {
  /** Replaces an existing file. */
  readonly force?: boolean
  /** Called with the rows of the largest table that are cloned, and their number. The clone waits for it between two batches. */
  readonly onProgress?: (done: number, total: number) => void | Promise<void>
  readonly signal?: AbortSignal
}

/** A clone that is whole and on disk, with its numbers of rows. `dropped` lists what it leaves out of other programs. */
export type Cloned<C extends Counts> = C & { readonly dropped: string }

/**
 * Clones a database, as it is at one moment, to `target`. The file gets that name once the clone is verified and on disk.
 * Rejects as `withClone` does. Also rejects and changes nothing if there is a file, unless `force` is true and the file is a
 * database that no process has open.
 */
export async function cloneDatabase<C extends Counts>(source: Source<C>, target: string, options: CloneOptions) {
  if (fileIdentity(source.path) === fileIdentity(target)) {
    throw new AppError('misused', { message: `${target} is the ${source.role} itself: name another file.` })
  }
  using replaced = lockTarget(source, target, options)
  return await withClone(source, target, options, ({ db, cloned, publish }) => {
    if (source.role === 'backup') db.run(ENTER_WAL_MODE)
    if (replaced !== undefined) removeSideFiles(replaced)
    if (!publish(replaced !== undefined)) throw targetExists(target, options)
    return { ...cloned, path: target, bytes: statSync(target).size }
  })
}

/** Locks the database that is to be replaced. Returns `undefined` if there is none. */
function lockTarget({ role, format }: Source, target: string, { force = false }: CloneOptions): Database | undefined {
  if (!force && existsSync(target) && statSync(target).isFile()) throw targetExists(target)
  // An older backup may have several names. The others keep it.
  if (inspect(target, format, role === 'database' ? { onOtherName() {} } : {}).exists)
    return lockAlone(target, role === 'database' ? 'wait until it ends' : undefined)
  refuseSideFiles(target)
  return undefined
}

const targetExists = (target: string, { force = false }: CloneOptions = {}) =>
  new AppError('file_unusable', {
    message: `${target} ${force ? 'was made by another process meanwhile: run the same command again' : 'is there already: name another file, or replace it by --force'}.`,
  })

/**
 * Clones a database, as it is at one moment, to a new file beside `target`, verifies the clone, and passes it to `use`. Rejects
 * with `store_unusable` if the source is damaged, and with `file_unusable` if the clone cannot be made. Nothing of a clone is
 * left that `use` does not give its name.
 *
 * It does not use `vacuum into`, which does not sync its file, cannot be stopped, and does not say how many rows it has read.
 */
export async function withClone<C extends Counts, T>(
  source: Source<C>,
  target: string,
  options: CloneOptions,
  use: (clone: NewDatabase & { readonly cloned: Cloned<C> }) => T,
): Promise<T> {
  const isAtRest = source.state !== undefined
  let isWhole = false
  try {
    using clone = createDatabase(target)
    // Nobody can replace a database that is held while the clone opens it at its path.
    using _held = isAtRest ? undefined : openLocked(source.path, { readwrite: true, create: false }, hold)
    const access = isAtRest ? 'immutable=1' : 'mode=rw'
    clone.db.run('attach ?1 as source', [`${Bun.pathToFileURL(source.path).href}?${access}`])
    clone.db.run('begin')
    // A page may have lost rows, which no comparison with the clone would show.
    const damage = findDamage(clone.db, 'source.integrity_check(1)')
    if (damage !== '') throw damageFound(source.role, source.path, damage)
    isWhole = true
    const counts = await cloneRows(clone.db, source, options)
    clone.db.run('detach source')
    verify(clone.db, source, target, counts)
    requireResting(source.path, source.state)
    return use({ ...clone, cloned: { ...counts, dropped: describeObjects(source.dropped) } })
  } catch (error) {
    throw toCloneError(error, source, target, isWhole)
  }
}

/** Begins a read transaction. In WAL mode the lock would last without it. */
function hold(db: Database): void {
  if (!db.inTransaction) db.run('begin')
  rowsOf(db, 'pragma schema_version')
}

/** Clones the schema and all rows of the attached database `source`, and commits. Returns the counts of the source. */
async function cloneRows<C extends Counts>(
  clone: Database,
  { role, path, dropped, format }: Source<C>,
  options: CloneOptions,
): Promise<C> {
  // A signal may have come during the check.
  await nextTurn()
  if (pragmaNumber(clone, 'application_id', 'source') !== format.applicationId) throw databaseEmpty(path)
  clone.run(`pragma main.application_id = ${format.applicationId}`)
  clone.run(`pragma main.user_version = ${pragmaNumber(clone, 'user_version', 'source')}`)
  const droppedNames = new Set([BACKUP_OF, ...dropped.map(([, name]) => name)])
  const schema = rowsOf<[type: string, name: string, sql: string]>(
    clone,
    'select type, name, sql from source.sqlite_schema where sql is not null order by rowid',
  ).filter(([, name]) => !name.startsWith('sqlite_') && !droppedNames.has(name))
  const tables = schema.filter(([type]) => type === 'table')
  const expected = format.countRows(clone, 'source')
  for (const [, name, sql] of tables) {
    // `prepare` takes only the first statement of a text. `run` would execute all of them.
    clone.prepare(sql).run()
    if (name !== format.largest.table && !format.notCloned.includes(name))
      clone.run(`insert into main.${quoted(name)} select * from source.${quoted(name)}`)
  }
  await cloneLargest(clone, format, expected, options)
  // SQLite never uses an identifier again that it has given once.
  if (tables.some(([, , sql]) => /\bautoincrement\b/i.test(sql))) {
    clone.run('delete from main.sqlite_sequence')
    clone.run('insert into main.sqlite_sequence select * from source.sqlite_sequence')
  }
  // SQLite makes an index faster, and denser, once the rows are there.
  for (const [type, , sql] of schema) if (type !== 'table') clone.prepare(sql).run()
  if (role === 'database') {
    clone.run(`create table main.${BACKUP_OF} (path text not null) strict`)
    clone.run(`insert into main.${BACKUP_OF} (path) values (?1)`, [path])
  }
  clone.run('commit')
  return expected
}

/** Clones the largest table in batches, so that signals are handled and the progress is shown meanwhile. */
async function cloneLargest(
  clone: Database,
  { largest: { table, key } }: Format,
  expected: Counts,
  { onProgress, signal }: CloneOptions,
): Promise<void> {
  const [order, backwards] = [key.join(', '), key.map((column) => `${column} desc`).join(', ')]
  const afterLast = `where (${order}) > (select ${order} from main.${table} order by ${backwards} limit 1)`
  let done = 0
  let batch: number
  do {
    signal?.throwIfAborted()
    const next = `${done === 0 ? '' : afterLast} order by ${order} limit ${BATCH_ROWS}`
    batch = clone.run(`insert into main.${table} select * from source.${table} ${next}`).changes
    done += batch
    await onProgress?.(done, expected[table] ?? 0)
    await nextTurn()
  } while (batch === BATCH_ROWS)
}

const quoted = (name: string): string => `"${name.replaceAll('"', '""')}"`

/** Throws if the clone is damaged or lacks rows, if a row breaks a rule, or if another program has changed the schema since. */
function verify(clone: Database, { role, path, format }: Source, target: string, expected: Counts): void {
  // Read the file itself, and not the cache.
  clone.run('pragma shrink_memory')
  const damage = findDamage(clone)
  if (damage !== '') throw cannotBeMade(target, damage)
  const problems = format.findBrokenRows(clone)
  if (problems.length > 0) throw fileDamaged(role, path, `is damaged: ${problems.join('; ')}`)
  refuseChangedSchema(role, path, clone, pragmaNumber(clone, 'user_version'), format)
  const counts = format.countRows(clone, 'main')
  if (Bun.deepEquals(counts, expected)) return
  throw cannotBeMade(target, `of ${JSON.stringify(expected)} rows it has ${JSON.stringify(counts)}`)
}

const cannotBeMade = (target: string, reason: string, cause?: unknown) =>
  new AppError('file_unusable', { message: `${target} cannot be made: ${reason}.`, cause })

/** Once the source `isWhole`, damage is that of the clone. */
function toCloneError(error: unknown, { role, path }: Source, target: string, isWhole: boolean): unknown {
  if (isUnshared(error)) removeUnshared(path)
  if (error instanceof Error && isDamage(error) && !isWhole) return damageFound(role, path, error.message)
  // The file of the clone is open already, and nobody else knows it.
  if (isLocked(error) || isUnshared(error) || codeOf(error) === 'SQLITE_CANTOPEN') return toOpenError(error, path, role)
  // Neither an `AppError` nor the reason of a signal has a code.
  if (!(error instanceof Error && codeOf(error) !== '')) return error
  return cannotBeMade(target, isOutOfSpace(error) ? 'there is no space: make room' : error.message, error)
}
