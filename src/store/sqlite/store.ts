import type { Database } from 'bun:sqlite'
import { realpathSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import { AppError } from '../../domain/error.ts'
import type { Store } from '../../domain/store.ts'
import { storeUnusable } from '../errors.ts'
import type { OpenOptions } from '../options.ts'
import { openWriter } from './connection.ts'
import { type Connections, connect } from './connections.ts'
import { isLocked, isOutOfSpace } from './errors.ts'
import { createFile } from './files/new-file.ts'
import { syncDirectory } from './files/partial-files.ts'
import { inspect, nothingIn, refuseLeftWal } from './files/preflight.ts'
import { listed } from './files/schema.ts'
import { health } from './health.ts'
import { migrate, requireSafeSqlite } from './migrate.ts'
import { plants } from './plants.ts'
import { statistics } from './statistics.ts'
import { tokens } from './tokens.ts'
import { users } from './users.ts'

/**
 * The store in one SQLite file. Creates it where there is none, brings it up to date where it is older. Rejects with
 * `store_unusable` where neither can be. `onFailure` is told once if the store fails so that it must not be written to
 * any more; the process ought to end then.
 */
export async function openSqliteStore(
  path: string,
  onFailure: (error: AppError) => void,
  options: OpenOptions = {},
): Promise<Store> {
  const { mustExist = false, durability = 'full', writesInThread = false, onEvent = () => {}, observer } = options
  const inspected = inspect(path)
  refuseLeftWal(path)
  if (mustExist && inspected === undefined)
    throw storeUnusable(`There is no database ${path}: name the one that the server uses.`)
  if (mustExist && statSync(path).size === 0) throw nothingIn(path)
  if (inspected === undefined) createDatabaseFile(path)
  try {
    const first = openWriter(path, durability)
    try {
      requireSafeSqlite(sqliteVersion(first))
      const isCreated = migrate(first, path)
      // By now it is there, also where a link has led to nothing before.
      const madePath = realpathSync(path)
      // SQLite leaves the directory's entry of a new WAL unsynced; without it a loss of power would lose the whole file.
      syncDirectory(dirname(madePath))
      const foreign = listed(inspected?.foreignObjects ?? [])
      if (foreign !== '') onEvent({ level: 'warn', message: `${FOREIGN_OBJECTS}: ${foreign}`, sizes: {} })
      if (isCreated) options.onCreated?.(madePath)
      return assemble(connect(madePath, onFailure, { durability, writesInThread, onEvent, observer }))
    } finally {
      first.close(true)
    }
  } catch (error) {
    throw error instanceof AppError ? error : cannotOpen(path, error)
  }
}

/** SQLite would make the file as well, but not give it to the service's user. */
function createDatabaseFile(path: string): void {
  try {
    createFile(path)
  } catch {
    // Another first start was faster, or SQLite will say why there can be no file.
  }
}

const assemble = (connections: Connections): Store => ({
  ...plants(connections),
  ...tokens(connections),
  ...users(connections),
  ...health(connections),
  ...statistics(connections),
  close: connections.close,
})

const FOREIGN_OBJECTS = 'the database has objects of other programs, which plantstore restore drops'

const sqliteVersion = (db: Database): string => String(db.prepare('select sqlite_version()').values()[0]?.[0])

function cannotOpen(path: string, cause: unknown): AppError {
  if (isOutOfSpace(cause)) return storeUnusable(`There is no space for the database ${path}: make room.`, cause)
  if (isLocked(cause)) return storeUnusable(`The database ${path} is locked by another process: end it.`, cause)
  return storeUnusable(`The database ${path} cannot be used: ${String(cause)}.`, cause)
}
