import { createReadStream, existsSync, fstatSync, readdirSync, rmSync, statSync } from 'node:fs'
import { basename, dirname, extname, join } from 'node:path'
import { AppError } from '../../../domain/error.ts'
import type { Copied, CopyOptions } from '../../engine.ts'
import { openImmutable, openWriter, rowsOf } from '../connection.ts'
import { sqliteCode } from '../errors.ts'
import { fileIdentity, foundSideFiles, sideFilesOf, syncDirectory } from '../files/file-system.ts'
import { closeForReplacement, lockAlone } from '../files/lock.ts'
import { databaseMissing, inspect } from '../files/preflight.ts'
import { BACKUP_OF } from '../files/schema.ts'
import { pragmaNumber, SCHEMA_VERSION } from '../migrate.ts'
import { copyDatabase } from './copy-database.ts'
import { removeLeftovers } from './new-database.ts'

/**
 * Makes a backup of a database as it is at one moment, while other processes may write. The file gets its name once it is
 * verified and on disk. Rejects with `store_unusable` for the database, and with `file_unusable` for the backup.
 */
export async function backupSqlite(database: string, target: string, options: CopyOptions = {}): Promise<Copied> {
  const source = sourceOf(database)
  refuseTarget(database, target, options)
  return copyDatabase(source, target, options, ({ counts, replace, placeNew }) => {
    if (options.force === true && existsSync(target)) {
      closeForReplacement(lockAlone(target))
      replace()
    } else if (!placeNew()) {
      throw targetExists(target)
    }
    return { ...counts, path: target, bytes: statSync(target).size }
  })
}

/**
 * Makes and verifies a backup that can be read once. It is on the disk of the database, which has room for it, and has no name,
 * so nothing of it is left when the process ends. Rejects as `backupSqlite` does.
 */
export async function backupSqliteToRead(database: string, options: CopyOptions = {}) {
  return copyDatabase(sourceOf(database), `${database}-backup`, options, ({ counts, openFile }) => {
    // Nothing asks for the signal after this.
    options.signal?.throwIfAborted()
    const file = openFile()
    return { ...counts, bytes: fstatSync(file).size, chunks: createReadStream('', { fd: file }) }
  })
}

function sourceOf(path: string) {
  if (!inspect(path)) throw databaseMissing(path)
  return { role: 'database', path, dropped: [] } as const
}

function refuseTarget(database: string, target: string, { force = false }: CopyOptions): void {
  const directory = dirname(target)
  refuseDirectory(directory)
  if (!existsSync(target)) {
    // SQLite would take the file for a part of the backup.
    const [beside] = foundSideFiles(target)
    if (beside !== undefined) throw fileUnusable(`${beside} is there without its database: move it away.`)
    return
  }
  if ([database, ...sideFilesOf(database)].some((file) => fileIdentity(file) === fileIdentity(target))) {
    throw fileUnusable(`${target} is the database itself: name another file.`)
  }
  if (!statSync(target).isFile()) throw fileUnusable(`${target} is not a regular file: name another one.`)
  if (!force) throw targetExists(target)
  try {
    inspect(target)
  } catch (cause) {
    throw fileUnusable(`${target} is no backup, and stays as it is: name another file.`, cause)
  }
}

/** Throws `file_unusable` unless backups can be made in this directory. */
function refuseDirectory(directory: string): void {
  const found = statSync(directory, { throwIfNoEntry: false })
  if (found === undefined) throw fileUnusable(`There is no directory ${directory}: create it.`)
  if (!found.isDirectory()) throw fileUnusable(`${directory} is not a directory: name one.`)
}

const targetExists = (target: string) =>
  fileUnusable(`${target} is there already: name another file, or repeat it with --force.`)

const fileUnusable = (message: string, cause?: unknown) => new AppError('file_unusable', { message, cause })

/** Makes a backup in a directory. Its name has the time. Rejects as `backupSqlite` does. */
export async function backupSqliteInto(
  database: string,
  directory: string,
  nowMs: number,
  options: CopyOptions,
): Promise<Copied> {
  refuseDirectory(directory)
  removeLeftovers(directory, isNameOf(database))
  return backupSqlite(database, join(directory, backupName(database, nowMs)), options)
}

/**
 * Records a backup in the database, for the metrics of servers: when it began, and its size. Does nothing in a database of an
 * older schema, which has no place for the record. Rejects with SQLite's error.
 */
export async function recordBackup(database: string, atMs: number, bytes: number): Promise<void> {
  using writer = openWriter(database, 'full', { create: false })
  if (pragmaNumber(writer, 'user_version') !== SCHEMA_VERSION) return
  writer.run('insert or replace into last_backup (id, at_ms, bytes) values (1, ?1, ?2)', [atMs, bytes])
}

/**
 * Deletes the backups of a database that are beside its latest one, but for the latest `keep`. It counts and deletes a file only
 * if this program named it, it records this database's path, and it is no later than the latest one. Throws `misused` and
 * deletes nothing if the directory holds a backup of another path. Returns the names of the deleted backups, and what the
 * operator should know of the files that it left.
 */
export function keepLatestBackups(database: string, latest: string, keep: number) {
  const directory = dirname(latest)
  const kept: string[] = []
  const notices: string[] = []
  const leave = (name: string, doubt: string) => notices.push(`${name} ${doubt}: it is neither counted nor deleted.`)
  for (const file of readdirSync(directory, { withFileTypes: true })) {
    if (!file.isFile()) continue
    const path = recordedPath(join(directory, file.name))
    if (path !== undefined && path !== database) {
      throw new AppError('misused', {
        message:
          `No old backup was deleted: ${directory} also holds ${file.name}, a backup of ${path}. ` +
          'Each database needs a folder of its own: name another one in --dir, or move that file away.',
      })
    }
    if (!isNameOf(database)(file.name)) continue
    if (path === undefined) leave(file.name, 'does not say which database it is a backup of')
    else if (file.name > basename(latest)) leave(file.name, 'is dated in the future')
    else kept.push(file.name)
  }
  const deleted = kept.sort().slice(0, -keep)
  for (const name of deleted) rmSync(join(directory, name), { force: true })
  if (deleted.length > 0) syncDirectory(directory)
  return { deleted, notices }
}

/** The name of a backup: the name of the database and the time in UTC. So the order of names is the order of time. */
const backupName = (database: string, nowMs: number): string =>
  `${stemOf(database)}-${new Date(nowMs).toISOString().replaceAll(':', '-')}.db`

/** Whether `backupName` gives such a name. */
const isNameOf = (database: string) => (name: string) => {
  const stem = `${stemOf(database)}-`
  return name.startsWith(stem) && /^\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d\.\d{3}Z\.db$/.test(name.slice(stem.length))
}

const stemOf = (database: string): string => basename(database, extname(database))

/** The path that a backup records. `undefined` if it records none or is no readable database. Leaves no trace. */
function recordedPath(file: string): string | undefined {
  try {
    using db = openImmutable(file)
    return rowsOf<[string]>(db.prepare(`select path from ${BACKUP_OF}`).values())[0]?.[0]
  } catch (error) {
    if (sqliteCode(error) === undefined) throw error
    return undefined
  }
}
