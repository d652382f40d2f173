import { readFileSync, truncateSync } from 'node:fs'

/** Sizes in bytes of the parts of a WAL (https://sqlite.org/walformat.html#the_wal_file_format). */
const HEADER_BYTES = 32
const FRAME_HEADER_BYTES = 24

/**
 * How many transactions the WAL of a database holds, of all processes. Counts up until SQLite restarts the WAL, after some
 * MiB or the last connection.
 */
export const countCommits = (database: string): number => commitEnds(`${database}-wal`).length

/** Removes the last transaction from the WAL of a closed database, as if it had not reached the disk. */
export function dropLastCommit(database: string): void {
  const wal = `${database}-wal`
  const ends = commitEnds(wal)
  if (ends.length > 0) truncateSync(wal, ends.at(-2) ?? HEADER_BYTES)
}

/** The offsets in a WAL at which its transactions end. */
function commitEnds(path: string): number[] {
  const wal = readFileSync(path)
  if (wal.length < HEADER_BYTES) return []
  const frameBytes = FRAME_HEADER_BYTES + wal.readUInt32BE(8)
  const salt = wal.subarray(16, 24)
  const ends: number[] = []
  for (let start = HEADER_BYTES; start + frameBytes <= wal.length; start += frameBytes) {
    // The following frames were written before SQLite restarted the WAL.
    if (!wal.subarray(start + 8, start + 16).equals(salt)) break
    // The last frame of a transaction says how large the database is after it.
    if (wal.readUInt32BE(start + 4) > 0) ends.push(start + frameBytes)
  }
  return ends
}
