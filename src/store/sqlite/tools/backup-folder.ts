import { readdirSync, rmSync } from 'node:fs'
import { basename, dirname, extname, join } from 'node:path'
import { AppError } from '../../../domain/error.ts'
import type { Copied, CopyOptions } from '../../file-tools.ts'
import { recordedPath } from '../files/backup-record.ts'
import { removeLeftovers, syncDirectory } from '../files/partial-files.ts'
import { backupSqlite, refuseDirectory } from './backup.ts'

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
 * Deletes the backups of a database that are beside its latest one, but for the latest `keep`. It counts and deletes a file only
 * if this program named it, it records this database's path, and it is no later than the latest one. Throws `misused` and
 * deletes nothing if the directory holds a backup of another path. Returns the names of the deleted backups, and what the
 * operator should know of the files that it left.
 */
export function keepLatestBackups(database: string, latest: string, keep: number) {
  const directory = dirname(latest)
  const files = readdirSync(directory, { withFileTypes: true })
    .filter((file) => file.isFile())
    .map(({ name }) => ({ name, path: recordedPath(join(directory, name)) }))
    .sort((a, b) => (a.name < b.name ? -1 : 1))
  const foreign = files.find(({ path }) => path !== undefined && path !== database)
  if (foreign !== undefined) throw foreignBackup(directory, foreign.name, String(foreign.path))
  const named = files.filter(({ name }) => isNameOf(database)(name))
  const unknown = named.filter(({ path }) => path === undefined)
  const future = named.filter(({ name, path }) => path !== undefined && name > basename(latest))
  const deleted = named
    .filter((file) => !unknown.includes(file) && !future.includes(file))
    .slice(0, -keep)
    .map(({ name }) => name)
  for (const name of deleted) rmSync(join(directory, name), { force: true })
  if (deleted.length > 0) syncDirectory(directory)
  const notice = (reason: string) => (file: { readonly name: string }) =>
    `${file.name} ${reason}: it is neither counted nor deleted.`
  return {
    deleted,
    notices: [
      ...unknown.map(notice('does not say which database it is a backup of')),
      ...future.map(notice('is dated in the future')),
    ],
  }
}

const foreignBackup = (directory: string, name: string, path: string) =>
  new AppError('misused', {
    message:
      `No old backup was deleted: ${directory} also holds ${name}, a backup of ${path}. ` +
      'Each database needs a folder of its own: name another one in --dir, or move that file away.',
  })

/** The name of a backup: the name of the database and the time in UTC. So the order of names is the order of time. */
const backupName = (database: string, nowMs: number): string =>
  `${stemOf(database)}-${new Date(nowMs).toISOString().replaceAll(':', '-')}.db`

/** Whether `backupName` gives such a name. */
const isNameOf = (database: string) => (name: string) => {
  const stem = `${stemOf(database)}-`
  return name.startsWith(stem) && /^\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d\.\d{3}Z\.db$/.test(name.slice(stem.length))
}

const stemOf = (database: string): string => basename(database, extname(database))
