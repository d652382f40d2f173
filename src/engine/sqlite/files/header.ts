import { readSync } from 'node:fs'
import { withFile } from './file-system.ts'

/** The header of a database (https://sqlite.org/fileformat.html#the_database_header). */
const HEADER_BYTES = 100
const MAGIC = 'SQLite format 3\0'

/** What the header of a file says. It may be older than the WAL. */
export function readHeader(path: string) {
  const bytes = firstBytes(path)
  const header = Buffer.concat([bytes, Buffer.alloc(HEADER_BYTES)])
  const pageBytes = header.readUInt16BE(16) === 1 ? 65536 : header.readUInt16BE(16)
  const pagesAreValid = header.readUInt32BE(24) === header.readUInt32BE(92)
  return {
    isDatabase: header.toString('latin1').startsWith(MAGIC),
    isWhole: bytes.length === HEADER_BYTES,
    applicationId: header.readUInt32BE(68),
    /** The file has at least so many bytes, unless it is truncated. */
    fileBytes: pagesAreValid ? header.readUInt32BE(28) * pageBytes : 0,
  }
}

function firstBytes(path: string): Buffer {
  const bytes = Buffer.alloc(HEADER_BYTES)
  const length = withFile(path, 'r', (file) => readSync(file, bytes, 0, HEADER_BYTES, 0))
  return bytes.subarray(0, length)
}
