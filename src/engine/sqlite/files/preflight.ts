import type { Database } from 'bun:sqlite'
import { accessSync, constants, existsSync, statSync } from 'node:fs'
import { basename, dirname } from 'node:path'
import { sleepSync } from 'bun'
import { codeOf, orUndefined } from '../../../error.ts'
import { type FileRole, fileDamaged, requireVersion, storeUnusable } from '../../errors.ts'
import { openImmutable, openReader } from '../driver.ts'
import { cannotOpen, toOpenError } from '../errors.ts'
import type { Format } from '../format.ts'
import { pragmaNumber } from '../migrate.ts'
import { sizeOf } from './file-system.ts'
import { readHeader } from './header.ts'
import { describeOtherName } from './other-names.ts'
import { type Definition, refuseChangedSchema } from './schema.ts'

/** The header of a WAL (https://sqlite.org/fileformat.html#wal_file_format). */
const WAL_HEADER_BYTES = 32

/** The longest name on most file systems, the longest path that SQLite opens, and the longest ending beside a database. */
const NAME_MAX_BYTES = 255
const PATH_MAX_BYTES = 512
const ENDING_MAX_BYTES = '-backup.partial--journal'.length + crypto.randomUUID().length

const LOOK_PAUSE_MS = 20

export interface InspectOptions {
  /** Called with a sentence if the file is at another path, too. Without it, such a file is refused. */
  readonly onOtherName?: ((problem: string) => void) | undefined
  /** Whether it is enough to read the file. */
  readonly isReader?: boolean
}

/**
 * Refuses a path where no database can be, a file that is not our database, and a database whose schema another program has
 * changed, in a line that says which it is. This changes no byte of the file, but takes back a write that a kill has
 * interrupted. It runs before anything else opens the file for writing. Also returns the objects of other programs, and for a
 * reader the resting state of a file that this process may not write to.
 */
export function inspect(path: string, format: Format, { isReader = false, onOtherName }: InspectOptions = {}) {
  const state = refuseUnusablePath(path, isReader)
  const file = statSync(path, { throwIfNoEntry: false })
  if (file?.isDirectory()) throw storeUnusable(`The database ${path} is a directory: name a file.`)
  if (file?.isFile() === false) throw storeUnusable(`The database ${path} is not a regular file: name one.`)
  const otherName = file && describeOtherName(path)
  if (otherName !== undefined && onOtherName === undefined) throw storeUnusable(otherName)
  if (otherName !== undefined) onOtherName?.(otherName)
  if (sizeOf(path) === 0) return { exists: file !== undefined, foreign: [] }
  refuseForeignHeader('database', path, format)
  // A database of another program may come without WAL mode, and has a journal while its first start brings it into that.
  const openInUse = () => openReader(path, { recovers: sizeOf(`${path}-journal`) > 0 })
  return {
    exists: true,
    foreign: inspectAtRest(path, format) ?? inspectSchema('database', path, format, openInUse),
    state,
  }
}

/**
 * Refuses a path whose database is missing or empty if its WAL is still there, which may hold the latest acknowledged writes.
 * Also refuses a path that has a journal alone. SQLite would take either for a part of a new database.
 */
export function refuseLeftFiles(path: string): void {
  if (sizeOf(`${path}-journal`) > 0 && !existsSync(path)) refuseSideFiles(path)
  // The WAL first, because another first start creates it after the database.
  if (sizeOf(`${path}-wal`) <= WAL_HEADER_BYTES || sizeOf(path) !== 0) return
  throw storeUnusable(
    `${path}-wal holds the latest writes of a database that is not there any more: move that back to ${path}, or this file away.`,
  )
}

/** Refuses a path for a new database if there are files beside it that SQLite would take for a part of it. */
export function refuseSideFiles(path: string): void {
  const beside = ['-wal', '-shm', '-journal'].map((name) => path + name).filter((file) => existsSync(file))
  if (beside.length > 0)
    throw storeUnusable(`${beside.join(' and ')} would be taken for a part of ${path}: move what is there away.`)
}

/**
 * Refuses a backup that is not a whole database of ours by itself. It writes nothing, because the backup and its directory may
 * belong to another user. Also returns the resting state of the file, which any write changes.
 */
export function inspectBackup(path: string, format: Format) {
  const file = statSync(path, { throwIfNoEntry: false })
  if (file === undefined) throw storeUnusable(`There is no file ${path}: name the backup.`)
  if (!file.isFile()) throw storeUnusable(`${path} is not a regular file: name the backup.`)
  try {
    accessSync(path, constants.R_OK)
  } catch (cause) {
    throw cannotOpen(path, 'backup', cause)
  }
  const state = restingState(path)
  if (state === undefined)
    throw storeUnusable(`${path} is a database in use: make a backup of it`, undefined, 'back up')
  refuseForeignHeader('backup', path, format)
  return { state, foreign: inspectAlone('backup', path, format) }
}

/**
 * Inspects the file alone. Returns `undefined` if the WAL holds something or somebody writes, because then the file alone does
 * not tell the truth. It looks twice before it refuses, because a file's times are coarse.
 */
function inspectAtRest(path: string, format: Format, isSecondLook = false): readonly Definition[] | undefined {
  const state = restingState(path)
  if (state === undefined) return undefined
  try {
    const foreign = inspectAlone('database', path, format)
    return restingState(path) === state ? foreign : undefined
  } catch (refusal) {
    if (restingState(path) !== state) return undefined
    if (isSecondLook) throw refusal
  }
  sleepSync(LOOK_PAUSE_MS)
  return inspectAtRest(path, format, true)
}

/** Throws `store_unusable` if a file had another resting state before. */
export function requireResting(path: string, state: string | undefined): void {
  if (state !== undefined && restingState(path) !== state)
    throw storeUnusable(`${path} was written to meanwhile: make a backup of it`, undefined, 'back up')
}

/** The size and time of a file, which any write changes. `undefined` if a WAL or a journal holds something. */
function restingState(path: string): string | undefined {
  if (sizeOf(`${path}-wal`) > 0 || sizeOf(`${path}-journal`) > 0) return undefined
  const { size, mtimeNs } = statSync(path, { bigint: true })
  return `${size} ${mtimeNs}`
}

/** Returns the resting state of a file that this process may only read, if that is enough for a reader. */
function refuseUnusablePath(path: string, isReader: boolean): string | undefined {
  // The driver of SQLite leaves white space out, and would open another file.
  if (path !== path.trim())
    throw storeUnusable(`The path ${JSON.stringify(path)} ends in white space: leave it out, or rename the file.`)
  const directory = dirname(path)
  const isLonger = (text: string, maxBytes: number) => Buffer.byteLength(text) + ENDING_MAX_BYTES > maxBytes
  if (isLonger(basename(path), NAME_MAX_BYTES) || isLonger(path, PATH_MAX_BYTES))
    throw storeUnusable(`The path ${path} is too long for the names of the files beside it: shorten it.`)
  if (!existsSync(directory)) throw storeUnusable(`The directory ${directory} does not exist: create it.`)
  if (!statSync(directory).isDirectory())
    throw storeUnusable(`${directory} is not a directory: name a file inside one.`)
  for (const place of existsSync(path) ? [directory, path] : [directory]) {
    try {
      accessSync(place, constants.R_OK | constants.W_OK)
    } catch (cause) {
      const state = isReader ? orUndefined(() => readHeader(path) && restingState(path)) : undefined
      if (state !== undefined) return state
      const problem = codeOf(cause) === 'EROFS' ? READ_ONLY : 'cannot be read and written: let this user do both'
      throw storeUnusable(`${place} ${problem}.`, cause)
    }
  }
  return undefined
}

const READ_ONLY =
  'is on a read-only file system: allow it by ReadWritePaths= of the systemd unit. To only read the database, copy it with its -wal file first'

/** Inspects the schema by a connection that cannot write. A database without tables belongs to nobody. */
function inspectSchema(role: FileRole, path: string, format: Format, open: (path: string) => Database) {
  const known = format.migrations.length
  try {
    using db = open(path)
    // One transaction, because another first start may create the schema meanwhile.
    db.run('begin')
    const tables = db.prepare('select name from sqlite_schema').values().length
    const version = pragmaNumber(db, 'user_version')
    if (pragmaNumber(db, 'application_id') !== format.applicationId && tables > 0) throw databaseForeign(path)
    requireVersion(path, version, known, true)
    if (db.prepare('pragma encoding').values()[0]?.[0] !== 'UTF-8')
      throw storeUnusable(`${path} is in UTF-16, which has no backup`, undefined, 'dump')
    return refuseChangedSchema(role, path, db, version, format)
  } catch (cause) {
    throw toOpenError(cause, path, role)
  }
}

export const databaseMissing = (path: string) =>
  storeUnusable(`There is no database ${path}: name the one that the server uses.`)

export const databaseEmpty = (path: string) => storeUnusable(`The database ${path} has nothing in it yet.`)

/** Refuses a file whose header is not that of our database. */
function refuseForeignHeader(role: FileRole, path: string, format: Format): void {
  const { isDatabase, isWhole, applicationId } = readHeader(path)
  if (!isDatabase) throw storeUnusable(`The file ${path} is not a database.`)
  if (!isWhole) throw truncated(role, path)
  if (applicationId !== 0 && applicationId !== format.applicationId) throw databaseForeign(path)
}

/** Inspects a file that nobody writes to, and leaves no trace. */
function inspectAlone(role: FileRole, path: string, format: Format): readonly Definition[] {
  // The header first, because the file may grow meanwhile.
  const { fileBytes } = readHeader(path)
  if (sizeOf(path) < fileBytes) throw truncated(role, path)
  return inspectSchema(role, path, format, openImmutable)
}

const databaseForeign = (path: string) =>
  storeUnusable(`The database ${path} belongs to another application: name another file.`)

const truncated = (role: FileRole, path: string) => fileDamaged(role, path, 'is truncated')
