import { realpathSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import { type EngineError, orUndefined } from '../errors.ts'
import type { EngineEvent } from '../observer.ts'
import { type ConnectOptions, connect } from './connections.ts'
import { openWriter, rowsOf } from './driver.ts'
import { isUnshared, toOpenError } from './errors.ts'
import { createFile, filesOpenToOthers, syncDirectory } from './files/file-system.ts'
import { removeUnshared } from './files/lock.ts'
import { databaseEmpty, databaseMissing, type InspectOptions, inspect, refuseLeftWal } from './files/preflight.ts'
import { describeObjects } from './files/schema.ts'
import type { Format } from './format.ts'
import { migrate, requireSafeSqlite } from './migrate.ts'
import type { Program, Writes } from './program.ts'

export interface EngineOptions extends ConnectOptions, Pick<InspectOptions, 'onOtherName'> {
  /** Rejects if there is no database, instead of creating it. */
  readonly mustExist?: boolean | undefined
  /** Called with the path of the database if this created it. */
  readonly onCreated?: ((path: string) => void) | undefined
  /** Called with each event that the operator should know of. */
  readonly onEvent: (event: EngineEvent) => void
}

/**
 * Opens a store in a SQLite file. Creates the file if there is none, and migrates an older schema. Rejects with an
 * `EngineError` of kind `store_unusable`. Calls `onFailure` once if the store fails later and must not be written to any more.
 */
export async function openEngine<All extends Writes>(
  program: Program,
  format: Format,
  path: string,
  onFailure: (error: EngineError) => void,
  options: EngineOptions,
) {
  const { mustExist = false, durability, startThread, onEvent } = options
  const { exists, foreign } = inspect(path, format, options)
  refuseLeftWal(path)
  if (mustExist && !exists) throw databaseMissing(path)
  if (mustExist && statSync(path).size === 0) throw databaseEmpty(path)
  // SQLite could create the file too, but would not give it to the service's user. If this fails, another first start was
  // faster, or SQLite fails next and tells why.
  if (!exists) orUndefined(() => createFile(path))
  try {
    using first = openWriter(path, durability)
    requireSafeSqlite(String(rowsOf(first, 'select sqlite_version()')[0]?.[0]))
    const isCreated = migrate(first, path, format)
    // The file exists now, even if the path is a link whose target was missing.
    const madePath = realpathSync(path)
    // SQLite does not sync the directory's entry of a new WAL. Without the entry a power loss would lose the whole WAL.
    syncDirectory(dirname(madePath))
    const objects = describeObjects(foreign)
    if (objects !== '') onEvent({ level: 'warn', message: `${FOREIGN_OBJECTS}: ${objects}`, sizes: {} })
    if (isCreated) options.onCreated?.(madePath)
    const exposed = startThread === undefined ? [] : filesOpenToOthers(madePath)
    if (exposed.length > 0) onEvent({ level: 'warn', message: `${EXPOSED}: chmod 600 ${exposed.join(' ')}`, sizes: {} })
    return connect<All>(program, madePath, onFailure, options)
  } catch (error) {
    if (isUnshared(error)) removeUnshared(path, !exists)
    throw toOpenError(error, path)
  }
}

const EXPOSED = 'the database is open to others'

const FOREIGN_OBJECTS = 'the database has objects of other programs, which no backup holds'
