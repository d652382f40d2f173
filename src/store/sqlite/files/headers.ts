import { closeSync, openSync, readSync, statSync } from 'node:fs'
import { copyUnfinished, type FileRole, fileDamaged, storeUnusable } from '../../errors.ts'
import { APPLICATION_ID, UNFINISHED_ID } from '../migrate.ts'

/** The header of a database (https://sqlite.org/fileformat.html#the_database_header). */
const HEADER_BYTES = 100
const MAGIC = 'SQLite format 3\0'
/** The header of a rollback journal (https://sqlite.org/fileformat.html#the_rollback_journal). */
const JOURNAL_HEADER_BYTES = 28
const JOURNAL_MAGIC = '\xd9\xd5\x05\xf9\x20\xa1\x63\xd7'
/** The position of the application id in the header of a database. */
const APPLICATION_ID_OFFSET = 68

/** Whether the file is an unfinished copy. */
export function isUnfinishedCopy(path: string): boolean {
  if (statSync(path, { throwIfNoEntry: false })?.isFile() !== true) return false
  const header = readHeader(path)
  return header.length === HEADER_BYTES && header.readUInt32BE(APPLICATION_ID_OFFSET) === UNFINISHED_ID
}

/**
 * Whether the power was lost during the first write to the file. Then its journal says that the file was empty before, and any
 * part of the write may be there.
 */
export function isHalfMade(path: string): boolean {
  const journal = readJournalHeader(path)
  if (journal.length < JOURNAL_HEADER_BYTES || !journal.toString('latin1').startsWith(JOURNAL_MAGIC)) return false
  const pagesBefore = journal.readUInt32BE(16)
  const header = readHeader(path)
  const isNew = header.toString('latin1').startsWith(MAGIC) || header.every((byte) => byte === 0)
  return (
    pagesBefore === 0 && isNew && header.length === HEADER_BYTES && header.readUInt32BE(APPLICATION_ID_OFFSET) === 0
  )
}

/** Refuses a file whose header is not that of our database. The header may be older than the WAL. */
export function refuseForeignHeader(role: FileRole, path: string): void {
  const header = readHeader(path)
  if (header.toString('latin1', 0, MAGIC.length) !== MAGIC) throw storeUnusable(`The file ${path} is not a database.`)
  if (header.length < HEADER_BYTES) throw truncated(role, path)
  const applicationId = header.readUInt32BE(APPLICATION_ID_OFFSET)
  if (applicationId === UNFINISHED_ID) throw copyUnfinished(path)
  if (applicationId !== 0 && applicationId !== APPLICATION_ID) throw databaseForeign(path)
}

/** Refuses a file with fewer pages than its header says. It reads the header first, because the file may grow meanwhile. */
export function refuseTruncated(role: FileRole, path: string): void {
  const header = readHeader(path)
  const pageBytes = header.readUInt16BE(16) === 1 ? 65536 : header.readUInt16BE(16)
  const pages = header.readUInt32BE(28)
  const pagesAreValid = header.readUInt32BE(24) === header.readUInt32BE(92)
  if (pagesAreValid && statSync(path).size < pages * pageBytes) throw truncated(role, path)
}

/** Empty if there is no journal. Another first start may remove it at any time. */
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

/** The file is a database of another application. */
export const databaseForeign = (path: string) =>
  storeUnusable(`The database ${path} belongs to another application: name another file.`)

const truncated = (role: FileRole, path: string) => fileDamaged(role, path, 'is truncated')
