import { dirname } from 'node:path'
import type { AppError } from '../../error.ts'
import { type ConnectOptions, connect } from './connections.ts'
import { openWriteConnection, rowsOf } from './driver.ts'
import { isUnshared, toOpenError } from './errors.ts'
import { refuseMarked } from './files/damage-mark.ts'
import { filesOpenToOthers, sizeOf, syncDirectory } from './files/file-system.ts'
import { removeUnshared } from './files/lock.ts'
import { makeDatabase } from './files/new-database.ts'
import { removeLeftovers } from './files/other-names.ts'
import { databaseEmpty, databaseMissing, type InspectOptions, inspect, refuseLeftFiles } from './files/preflight.ts'
import { type Definition, describeObjects } from './files/schema.ts'
import type { Format } from './format.ts'
import { migrate, pragmaNumber, requireSafeSqlite } from './migrate.ts'
import type { Program, Writes } from './program.ts'

export interface EngineOptions extends ConnectOptions, Pick<InspectOptions, 'onOtherName'> {
  /** Rejects if there is no database, instead of creating it. */
  readonly mustExist?: boolean | undefined
  /** Called after the schema of an older database was raised. Without it, such a database is refused. */
  readonly onRaised?: ((from: number, to: number) => void) | undefined
  /** Called with the path of the database if this created it. */
  readonly onCreated?: ((path: string) => void) | undefined
}

/**
 * Opens a store in a SQLite file. Creates the file if there is none, and migrates an older schema. Rejects with an
 * `AppError` of kind `store_unusable`. Calls `onFailure` once if the store fails later and must not be written to any more.
 */
export async function openEngine<All extends Writes>(
  program: Program,
  format: Format,
  path: string,
  onFailure: (error: AppError) => void,
  options: EngineOptions,
) {
  const { mustExist = false, durability, startThread, onEvent } = options
  const { exists, foreign } = inspect(path, format, options)
  refuseLeftFiles(path)
  const isEmpty = sizeOf(path) === 0
  if (mustExist && isEmpty) throw exists ? databaseEmpty(path) : databaseMissing(path)
  let isMade = false
  try {
    if (startThread !== undefined) removeLeftovers(path)
    isMade = isEmpty && makeDatabase(path, (db) => migrate(db, path, format))
    // Commands may still read what they can.
    if (startThread !== undefined) refuseMarked(path, onEvent)
    using first = openWriteConnection(path, durability)
    requireSafeSqlite(String(rowsOf(first, 'select sqlite_version()')[0]?.[0]))
    if (mustExist && pragmaNumber(first, 'user_version') === 0) throw databaseEmpty(path)
    const isCreated = migrate(first, path, format, options.onRaised) || isMade
    // SQLite does not sync the directory's entry of a new WAL. Without the entry a power loss would lose the whole WAL.
    syncDirectory(dirname(path))
    warnOfObjects(foreign, onEvent)
    if (isCreated) options.onCreated?.(path)
    const exposed = startThread === undefined ? [] : filesOpenToOthers(path)
    if (exposed.length > 0) onEvent({ level: 'warn', message: `${EXPOSED}: chmod 600 ${exposed.join(' ')}`, sizes: {} })
    return connect<All>(program, path, onFailure, options)
  } catch (error) {
    if (isUnshared(error)) removeUnshared(path, isMade)
    throw toOpenError(error, path)
  }
}

const EXPOSED = 'the database is open to others'

export function warnOfObjects(foreign: readonly Definition[], onEvent?: EngineOptions['onEvent']): void {
  const message = `the database has objects of other programs, which no backup holds: ${describeObjects(foreign)}`
  if (foreign.length > 0) onEvent?.({ level: 'warn', message, sizes: {} })
}
