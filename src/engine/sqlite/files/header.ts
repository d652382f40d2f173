// Tested in test/engine/sqlite/preflight.test.ts.
import { readSync } from 'node:fs'
import { withFile } from './file-system.ts'

/** The header of a database (https://sqlite.org/fileformat.html#the_database_header). */
const HEADER_BYTES = 100
const MAGIC = 'SQLite format 3\0'

/** What the header of a file says. It may be older than the WAL. */
export function readHeader(path: string) {
  // A shorter file has zeros at the end.
  const header = Buffer.alloc(HEADER_BYTES)
  const length = withFile(path, 'r', (file) => readSync(file, header, 0, HEADER_BYTES, 0))
  const pageBytes = header.readUInt16BE(16) === 1 ? 65536 : header.readUInt16BE(16)
  const pagesAreValid = header.readUInt32BE(24) === header.readUInt32BE(92)
  return {
    isDatabase: header.toString('latin1').startsWith(MAGIC),
    isWhole: length === HEADER_BYTES,
    applicationId: header.readUInt32BE(68),
    /** The file has at least so many bytes, unless it is truncated. */
    fileBytes: pagesAreValid ? header.readUInt32BE(28) * pageBytes : 0,
  }
}
