import type { Database } from 'bun:sqlite'
import { statSync } from 'node:fs'
import { AppError } from '../../../domain/error.ts'
import type { CopyOptions } from '../../engine.ts'
import { storeUnusable } from '../../errors.ts'
import { fileIdentity, foundSideFiles } from '../files/file-system.ts'
import { closeForReplacement, lockAlone } from '../files/lock.ts'
import { inspect, inspectAtRest, restingState } from '../files/preflight.ts'
import { listed } from '../files/schema.ts'
import { copyDatabase } from './copy-database.ts'

/**
 * Makes a copy of a backup the database, once the copy is verified and on disk. The backup does not change. Rejects with
 * `store_unusable` and changes nothing if the backup is damaged, if a process has the database open, or, without `force`, if
 * there is a database. Returns the objects of other programs that were not copied, for a message.
 */
export async function restoreSqlite(backup: string, database: string, options: CopyOptions = {}) {
  const { state, foreignObjects } = inspectAtRest(backup)
  if (fileIdentity(backup) === fileIdentity(database)) {
    throw new AppError('misused', { message: `${backup} is the database itself: name a backup of it.` })
  }
  using replaced = lockDatabase(database, options)
  // A backup may come from anybody, so the objects of other programs in it are dropped.
  const source = { role: 'backup', path: backup, dropped: foreignObjects } as const
  return await copyDatabase(source, database, options, ({ counts, replace, placeNew }) => {
    if (restingState(backup) !== state) {
      throw storeUnusable(`${backup} was written to meanwhile: make a backup of it by plantstore backup.`)
    }
    if (replaced !== undefined) {
      closeForReplacement(replaced)
      replace()
    } else if (!placeNew()) {
      throw databaseExists(database)
    }
    return { ...counts, path: database, bytes: statSync(database).size, dropped: listed(foreignObjects) }
  })
}

/** Locks the database that is to be replaced. Returns `undefined` if there is none. */
function lockDatabase(database: string, { force = false }: CopyOptions): Database | undefined {
  if (inspect(database)) {
    const locked = lockAlone(database)
    if (force) return locked
    locked.close(true)
    throw databaseExists(database)
  }
  const beside = foundSideFiles(database)
  if (beside.length === 0) return undefined
  throw storeUnusable(`${beside.join(' and ')} would be taken for a part of what is restored: move what is there away.`)
}

const databaseExists = (database: string) =>
  storeUnusable(`The database ${database} is there already: --force replaces it.`)
