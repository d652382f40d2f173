import type { Database } from 'bun:sqlite'
import { accessSync, closeSync, constants, existsSync, lstatSync, openSync, readSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import { sleepSync } from 'bun'
import { copyUnfinished, type FileRole, fileDamaged, storeUnusable } from '../../errors.ts'
import { openImmutable, openReader } from '../connection.ts'
import { sqliteCode } from '../errors.ts'
import { APPLICATION_ID, newer, pragmaNumber, SCHEMA_VERSION, UNFINISHED_ID } from '../migrate.ts'
import { type ForeignObject, refuseChangedSchema } from './schema.ts'

/** Bytes of the header (https://sqlite.org/fileformat.html#the_database_header). */
const HEADER_BYTES = 100
const MAGIC = 'SQLite format 3\0'
/** The same of a rollback journal (https://sqlite.org/fileformat.html#the_rollback_journal). */
const JOURNAL_HEADER_BYTES = 28
const JOURNAL_MAGIC = '\xd9\xd5\x05\xf9\x20\xa1\x63\xd7'

/** The same of a WAL (https://sqlite.org/fileformat.html#wal_file_format). */
const WAL_HEADER_BYTES = 32

const LOOKS_BEFORE_REFUSAL = 2
const LOOK_PAUSE_MS = 20

/** What an inspection has found in a file besides our schema. */
export interface Inspected {
  readonly foreignObjects: readonly ForeignObject[]
}

/**
 * Refuses, with one line that says which, a path where no database can be, a file that is no database of ours, and one whose
 * schema another program has changed. The file's bytes stay as they are: nothing is opened for writing before this has
 * passed. Returns `undefined` if there is no file.
 */
export function inspect(path: string): Inspected | undefined {
  refuseUnusablePath(path)
  if (!existsSync(path)) return undefined
  const file = statSync(path)
  if (file.isDirectory()) throw storeUnusable(`The database ${path} is a directory: name a file.`)
  if (!file.isFile()) throw storeUnusable(`The database ${path} is not a regular file: name one.`)
  refuseUnwritable(path)
  // An empty file is what SQLite itself leaves when it is stopped before its first write, or makes again if in it.
  if (file.size === 0 || isHalfMade(path)) return { foreignObjects: [] }
  refuseForeignHeader('database', path)
  const found = lookAtRest(path, () => {
    refuseTruncated('database', path)
    return inspectSchema('database', path, openImmutable)
  })
  return found ?? inspectSchema('database', path, openReader)
}

/**
 * Refuses a path whose database is gone, or empty, where a WAL of it is left: that may hold what was acknowledged last, and
 * SQLite deletes it when it makes a database there.
 */
export function refuseLeftWal(path: string): void {
  // First the WAL: another first start makes it after the database.
  const [wal, database] = [`${path}-wal`, path].map((file) => statSync(file, { throwIfNoEntry: false })?.size ?? 0)
  if (wal === undefined || wal <= WAL_HEADER_BYTES || database !== 0) return
  throw storeUnusable(
    `${path}-wal holds the latest writes of a database that is not there any more: move that back to ${path}, or this file away.`,
  )
}

/**
 * Refuses, in the same words, a file that is no whole database of ours by itself: its owner may be another, and nothing may
 * be written where it is. Returns its state, which is another one once somebody has written.
 */
export function inspectAtRest(path: string): string {
  const file = statSync(path, { throwIfNoEntry: false })
  if (file === undefined) throw storeUnusable(`There is no file ${path}: name the backup.`)
  if (!file.isFile()) throw storeUnusable(`${path} is not a regular file: name the backup.`)
  const state = restingState(path)
  if (state === undefined)
    throw storeUnusable(`${path} is a database in use: make a backup of it by plantstore backup.`)
  refuseForeignHeader('backup', path)
  refuseTruncated('backup', path)
  inspectSchema('backup', path, openImmutable)
  return state
}

/**
 * Looks at the file alone, which leaves no trace. That tells the truth only while nothing is in a WAL and nobody writes:
 * otherwise it returns `undefined`. A refusal is looked at twice, because the file's times are coarse.
 */
function lookAtRest(path: string, look: () => Inspected): Inspected | undefined {
  for (let looks = 1; ; looks++) {
    const before = restingState(path)
    if (before === undefined) return undefined
    try {
      const found = look()
      return restingState(path) === before ? found : undefined
    } catch (refusal) {
      if (restingState(path) !== before) return undefined
      if (looks === LOOKS_BEFORE_REFUSAL) throw refusal
      sleepSync(LOOK_PAUSE_MS)
    }
  }
}

/** Whether what is there is the mark of a copy that was not finished. */
export function isUnfinishedCopy(path: string): boolean {
  if (statSync(path, { throwIfNoEntry: false })?.isFile() !== true) return false
  const header = readHeader(path)
  return header.length === HEADER_BYTES && header.readUInt32BE(68) === UNFINISHED_ID
}

/** What a write would change; `undefined` where a WAL or a journal holds something. */
export function restingState(path: string): string | undefined {
  for (const name of ['-wal', '-journal']) if (statSync(path + name, { throwIfNoEntry: false })?.size) return undefined
  const { size, mtimeNs } = statSync(path, { bigint: true })
  return `${size} ${mtimeNs}`
}

/** Of a file's mode, what others than its own user may do: read and write. */
const OPEN_TO_OTHERS = 0o066

/** The database's files, those beside it included, that others than their own user may read or write. */
export const filesOpenToOthers = (path: string): string[] =>
  [path, `${path}-wal`, `${path}-shm`].filter((file) => {
    const mode = statSync(file, { throwIfNoEntry: false })?.mode ?? 0
    return (mode & OPEN_TO_OTHERS) !== 0
  })

/**
 * Which file is at a path now: device and inode. A link to the file that was there is another one: whoever opens it looks
 * for the files beside it where the link leads.
 */
export function fileIdentity(path: string): string {
  try {
    const file = lstatSync(path, { bigint: true, throwIfNoEntry: false })
    return file === undefined ? 'nothing' : `${file.dev} ${file.ino}`
  } catch {
    return 'out of reach'
  }
}

function refuseUnusablePath(path: string): void {
  const directory = dirname(path)
  if (!existsSync(directory))
    throw storeUnusable(`The directory ${directory} of the database does not exist: create it.`)
  if (!statSync(directory).isDirectory())
    throw storeUnusable(`${directory} is not a directory: name a file inside one.`)
  try {
    accessSync(directory, constants.W_OK | constants.X_OK)
  } catch (cause) {
    throw storeUnusable(`The directory ${directory} of the database is not writable: let this user write to it.`, cause)
  }
}

function refuseUnwritable(path: string): void {
  try {
    accessSync(path, constants.R_OK | constants.W_OK)
  } catch (cause) {
    throw storeUnusable(`The database ${path} cannot be read and written: let this user do both.`, cause)
  }
}

/**
 * Whether the power was lost during the first write into the file, of which any part may be there: the journal says
 * that the file was empty before.
 */
function isHalfMade(path: string): boolean {
  const journal = readJournalHeader(path)
  if (journal.length < JOURNAL_HEADER_BYTES || !journal.toString('latin1').startsWith(JOURNAL_MAGIC)) return false
  const pagesBefore = journal.readUInt32BE(16)
  const header = readHeader(path)
  const isNew = header.toString('latin1').startsWith(MAGIC) || header.every((byte) => byte === 0)
  return pagesBefore === 0 && isNew && header.length === HEADER_BYTES && header.readUInt32BE(68) === 0
}

/** What the first bytes tell, also while they are older than a WAL. */
function refuseForeignHeader(role: FileRole, path: string): void {
  const header = readHeader(path)
  if (header.toString('latin1', 0, MAGIC.length) !== MAGIC) throw storeUnusable(`The file ${path} is not a database.`)
  if (header.length < HEADER_BYTES) throw truncated(role, path)
  const applicationId = header.readUInt32BE(68)
  if (applicationId === UNFINISHED_ID) throw copyUnfinished(path)
  if (applicationId !== 0 && applicationId !== APPLICATION_ID) throw foreign(path)
}

/** The header counts the pages. It is read first: a file that grows meanwhile is not truncated. */
function refuseTruncated(role: FileRole, path: string): void {
  const header = readHeader(path)
  const pageBytes = header.readUInt16BE(16) === 1 ? 65536 : header.readUInt16BE(16)
  const pages = header.readUInt32BE(28)
  const pagesAreValid = header.readUInt32BE(24) === header.readUInt32BE(92)
  if (pagesAreValid && statSync(path).size < pages * pageBytes) throw truncated(role, path)
}

/** What SQLite reads, by a connection that cannot write. A file without tables is one that another start just made. */
function inspectSchema(role: FileRole, path: string, open: (path: string) => Database): Inspected {
  try {
    const db = open(path)
    try {
      // One moment: another first start may make the schema meanwhile.
      db.run('begin')
      const tables = db.prepare('select name from sqlite_schema').values().length
      const version = pragmaNumber(db, 'user_version')
      if (pragmaNumber(db, 'application_id') !== APPLICATION_ID && tables > 0) throw foreign(path)
      if (version > SCHEMA_VERSION) throw newer(path, version)
      return { foreignObjects: refuseChangedSchema(role, path, db, version) }
    } finally {
      db.close(true)
    }
  } catch (cause) {
    if (sqliteCode(cause) === undefined) throw cause
    throw fileDamaged(role, path, `cannot be read: ${String(cause)}`, cause)
  }
}

/** Nothing where there is no journal, or none any more: another first start may be at work. */
function readJournalHeader(path: string): Buffer {
  try {
    return readHeader(`${path}-journal`)
  } catch {
    return Buffer.alloc(0)
  }
}

function readHeader(path: string): Buffer {
  const file = openSync(path, 'r')
  try {
    const header = Buffer.alloc(HEADER_BYTES)
    return header.subarray(0, readSync(file, header, 0, HEADER_BYTES, 0))
  } finally {
    closeSync(file)
  }
}

/** For who wants to read what nobody has begun to write. */
export const nothingIn = (path: string) => storeUnusable(`The database ${path} has nothing in it yet.`)

const foreign = (path: string) =>
  storeUnusable(`The database ${path} belongs to another application: name another file.`)
const truncated = (role: FileRole, path: string) => fileDamaged(role, path, 'is truncated')
