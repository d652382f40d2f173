import { createReadStream, fstatSync, readdirSync, rmSync, statSync } from 'node:fs'
import { basename, dirname, extname, join } from 'node:path'
import { misused } from '../../../domain/error.ts'
import type { Cloned, CloneOptions } from '../../engine.ts'
import { openImmutable, openWriter, rowsOf } from '../driver.ts'
import { sqliteCode } from '../errors.ts'
import { realPath, syncDirectory } from '../files/file-system.ts'
import { databaseMissing, inspect, inspectBackup } from '../files/preflight.ts'
import { BACKUP_OF } from '../files/schema.ts'
import { pragmaNumber, SCHEMA_VERSION } from '../migrate.ts'
import { cloneDatabase, withClone } from './clone-database.ts'
import { withoutTime } from './new-database.ts'

/** Makes a backup of a database, while other processes may write. Rejects as `cloneDatabase` does. */
export const backup = async (database: string, file: string, options: CloneOptions): Promise<Cloned> =>
  cloneDatabase(sourceOf(database), realPath(file), options)

/**
 * Makes and verifies a backup that can be read once. It is on the disk of the database, which has room for it, and has no name,
 * so nothing of it is left when the process ends. Rejects as `withClone` does.
 */
export async function backupToRead(database: string, options: CloneOptions) {
  return withClone(sourceOf(database), `${database}-backup`, options, ({ cloned, openFile }) => {
    // Nothing asks for the signal after this.
    options.signal?.throwIfAborted()
    const file = openFile()
    return { ...cloned, bytes: fstatSync(file).size, chunks: createReadStream('', { fd: file }) }
  })
}

function sourceOf(path: string) {
  const { exists, foreign } = inspect(path)
  if (!exists) throw databaseMissing(path)
  return { role: 'database', path, dropped: foreign } as const
}

/** Makes a clone of a backup the database. The backup does not change. Rejects as `cloneDatabase` does. */
export async function restore(database: string, file: string, options: CloneOptions): Promise<Cloned> {
  const path = realPath(file)
  const { state, foreign } = inspectBackup(path)
  // A backup may come from anybody, so the objects of other programs in it are dropped.
  const cloned = await cloneDatabase({ role: 'backup', path, state, dropped: foreign }, database, options)
  return { ...cloned, bytes: statSync(path).size }
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

/** The path of a backup in a directory. Its name has the time in UTC, so that the order of names is the order of time. */
export const backupIn = (database: string, directory: string, nowMs: number): string =>
  join(directory, `${basename(database, extname(database))}-${new Date(nowMs).toISOString().replaceAll(':', '-')}.db`)

/**
 * Deletes the backups of a database that are beside its latest one, but for the latest `keep`. It counts and deletes a file only
 * if this program named it, it records this database's path, and it is no later than the latest one. Throws `misused` and
 * deletes nothing if the directory holds a backup of another path. Returns the names of the deleted backups, and of those that
 * are dated in the future.
 */
export function keepLatestBackups(database: string, latest: string, keep: number) {
  const [directory, latestName] = [dirname(latest), basename(latest)]
  const own: string[] = []
  for (const file of readdirSync(directory, { withFileTypes: true })) {
    const path = file.isFile() ? recordedPath(join(directory, file.name)) : undefined
    if (path !== undefined && path !== database) {
      throw misused(
        `No old backup was deleted: ${directory} also holds ${file.name}, a backup of ${path}. ` +
          'Each database needs a folder of its own: name another one in --dir, or move that file away.',
      )
    }
    if (path !== undefined && withoutTime(file.name) === withoutTime(latestName)) own.push(file.name)
  }
  own.sort()
  const deleted = own.filter((name) => name <= latestName).slice(0, -keep)
  for (const name of deleted) rmSync(join(directory, name), { force: true })
  if (deleted.length > 0) syncDirectory(directory)
  return { deleted, future: own.filter((name) => name > latestName) }
}

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
