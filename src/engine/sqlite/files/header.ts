import { readSync } from 'node:fs'
import { orUndefined } from '../../errors.ts'
import { withFile } from './file-system.ts'

/** The header of a database (https://sqlite.org/fileformat.html#the_database_header). */
const HEADER_BYTES = 100
const MAGIC = 'SQLite format 3\0'
/** The header of a rollback journal (https://sqlite.org/fileformat.html#the_rollback_journal). */
const JOURNAL_HEADER_BYTES = 28
const JOURNAL_MAGIC = '\xd9\xd5\x05\xf9\x20\xa1\x63\xd7'

/** What the header of a file says. It may be older than the WAL. */
export function readHeader(path: string) {
  const bytes = firstBytes(path)
  const header = Buffer.concat([bytes, Buffer.alloc(HEADER_BYTES)])
  const pageBytes = header.readUInt16BE(16) === 1 ? 65536 : header.readUInt16BE(16)
  const pagesAreValid = header.readUInt32BE(24) === header.readUInt32BE(92)
  return {
    isDatabase: header.toString('latin1').startsWith(MAGIC),
    isBlank: bytes.every((byte) => byte === 0),
    isWhole: bytes.length === HEADER_BYTES,
    applicationId: header.readUInt32BE(68),
    /** The file has at least so many bytes, unless it is truncated. */
    fileBytes: pagesAreValid ? header.readUInt32BE(28) * pageBytes : 0,
  }
}

/**
 * Whether the power was lost during the first write to the file. Then its journal says that the file was empty before, and any
 * part of the write may be there.
 */
export function isHalfMade(path: string): boolean {
  // There may be no journal, or another first start may remove it at any time.
  const journal = orUndefined(() => firstBytes(`${path}-journal`)) ?? Buffer.alloc(0)
  if (journal.length < JOURNAL_HEADER_BYTES || !journal.toString('latin1').startsWith(JOURNAL_MAGIC)) return false
  const pagesBefore = journal.readUInt32BE(16)
  const { isDatabase, isBlank, isWhole, applicationId } = readHeader(path)
  return pagesBefore === 0 && (isDatabase || isBlank) && isWhole && applicationId === 0
}

function firstBytes(path: string): Buffer {
  const bytes = Buffer.alloc(HEADER_BYTES)
  const length = withFile(path, 'r', (file) => readSync(file, bytes, 0, HEADER_BYTES, 0))
  return bytes.subarray(0, length)
}
