// Tested in test/cli/transcripts/backup-files.txt.
import { readdirSync, rmSync } from 'node:fs'
import { basename, dirname, extname, join } from 'node:path'
import { AppError, orUndefined } from '../../../error.ts'
import { openImmutable, rowsOf } from '../driver.ts'
import { syncDirectory } from '../files/file-system.ts'
import { withoutTime } from '../files/other-names.ts'
import { BACKUP_OF } from '../files/schema.ts'

/** The path of a backup in a directory. The name has the time in UTC, so the order of names is the order of time. */
export const backupIn = (directory: string, database: string, nowMs: number): string =>
  join(directory, `${basename(database, extname(database))}-${new Date(nowMs).toISOString().replaceAll(':', '-')}.db`)

/**
 * Deletes the backups of a database beside the latest one, but for the latest `keep`. It counts and deletes a file only if
 * `backupIn` named it, it records this path, and it is no later than the latest backup. Returns the names of the deleted backups,
 * and of later ones. Throws `misused` and deletes nothing if a backup of another database is there.
 */
export function keepBackups(database: string, latest: string, keep: number) {
  const [directory, latestName] = [dirname(latest), basename(latest)]
  const own: string[] = []
  for (const file of readdirSync(directory, { withFileTypes: true })) {
    const path = file.isFile() ? recordedPath(join(directory, file.name)) : undefined
    if (path !== undefined && path !== database) {
      const message =
        `No old backup was deleted: ${directory} also holds ${file.name}, a backup of ${path}. ` +
        'Each database needs a folder of its own: name another one in --dir, or move that file away.'
      throw new AppError('misused', { message })
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
const recordedPath = (file: string): string | undefined =>
  orUndefined(() => {
    using db = openImmutable(file)
    return rowsOf<[string]>(db, `select path from ${BACKUP_OF}`)[0]?.[0]
  })
