import { realpathSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import { type AppError, misused, orUndefined } from '../../domain/error.ts'
import type { Store } from '../../domain/store.ts'
import { type Connections, connect, join } from '../../engine/sqlite/connections.ts'
import { openWriter, rowsOf } from '../../engine/sqlite/driver.ts'
import { isUnshared, toOpenError } from '../../engine/sqlite/errors.ts'
import { createFile, filesOpenToOthers, syncDirectory } from '../../engine/sqlite/files/file-system.ts'
import { removeUnshared } from '../../engine/sqlite/files/lock.ts'
import { databaseEmpty, databaseMissing, inspect, refuseLeftWal } from '../../engine/sqlite/files/preflight.ts'
import { describeObjects } from '../../engine/sqlite/files/schema.ts'
import { migrate, requireSafeSqlite } from '../../engine/sqlite/migrate.ts'
import type { StoreShare } from '../../engine/sqlite/share.ts'
import type { OpenedStore, OpenOptions } from '../engine.ts'
import { health } from './health.ts'
import { plants } from './plants.ts'
import { tokens } from './tokens.ts'
import { users } from './users.ts'

/** `Engine.open` for a SQLite file. Creates the file if there is none, and migrates an older schema. */
export async function openSqliteStore(
  path: string,
  onFailure: (error: AppError) => void,
  options: OpenOptions = {},
): Promise<OpenedStore> {
  const { mustExist = false, durability = 'full', isServer = false, onEvent = () => {} } = options
  const { monotonicMs = performance.now.bind(performance) } = options
  if (durability === 'storage') {
    throw misused('--durability storage is for PostgreSQL only: name full or normal for a file.')
  }
  const { exists, foreign } = inspect(path, options)
  refuseLeftWal(path)
  if (mustExist && !exists) throw databaseMissing(path)
  if (mustExist && statSync(path).size === 0) throw databaseEmpty(path)
  // SQLite could create the file too, but would not give it to the service's user. If this fails, another first start was faster, or
  // SQLite fails next and tells why.
  if (!exists) orUndefined(() => createFile(path))
  try {
    using first = openWriter(path, durability)
    requireSafeSqlite(String(rowsOf(first, 'select sqlite_version()')[0]?.[0]))
    const isCreated = migrate(first, path)
    // The file exists now, even if the path is a link whose target was missing.
    const madePath = realpathSync(path)
    // SQLite does not sync the directory's entry of a new WAL. Without the entry a power loss would lose the whole WAL.
    syncDirectory(dirname(madePath))
    const objects = describeObjects(foreign)
    if (objects !== '') onEvent({ level: 'warn', message: `${FOREIGN_OBJECTS}: ${objects}`, sizes: {} })
    if (isCreated) options.onCreated?.(madePath)
    const exposed = isServer ? filesOpenToOthers(madePath) : []
    if (exposed.length > 0) onEvent({ level: 'warn', message: `${EXPOSED}: chmod 600 ${exposed.join(' ')}`, sizes: {} })
    const connections = connect(madePath, onFailure, { ...options, durability, isServer, onEvent, monotonicMs })
    return { ...storeOf(connections), opened: connections.writer.opened, share: connections.share }
  } catch (error) {
    if (isUnshared(error)) removeUnshared(path, !exists)
    throw toOpenError(error, path)
  }
}

/** Uses a store that another thread of this process has opened. That thread closes its store last. `onFailure` is that of `open`. */
export const joinStore = (
  share: StoreShare,
  onFailure: (error: AppError) => void,
  options: Pick<OpenOptions, 'observer' | 'threads'> & Required<Pick<OpenOptions, 'monotonicMs'>>,
): Store => storeOf(join(share, onFailure, { ...options, onEvent() {} }))

const storeOf = (connections: Connections): Store => ({
  ...plants(connections),
  ...tokens(connections),
  ...users(connections),
  ...health(connections),
  ...connections.versions,
  close: connections.close,
})

const EXPOSED = 'the database is open to others'

const FOREIGN_OBJECTS = 'the database has objects of other programs, which no backup holds'
