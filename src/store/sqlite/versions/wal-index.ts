import { type Pointer, toArrayBuffer } from 'bun:ffi'
import { readFileSync } from 'node:fs'

/**
 * Words of the WAL-index header (https://sqlite.org/walformat.html#the_wal_index_header). The counter of transactions and the
 * checksum of the last frame change with every commit of any process, and with nothing else. After the recovery of an index
 * that a killed process left half-written, one of the two alone could have its old value.
 */
const HEADER_BYTES = 48
const CHANGE_COUNTER_WORD = 2
const FRAMES_WORD = 4
const CHECKSUM_WORD = 6
/** A version has so many bits of the checksum, because a double must hold it exactly. */
const CHECKSUM_BITS = 21

/** A number for the state of a database. Every commit changes it. */
export type CommitVersion = number

/** The current content of the WAL-index. */
export interface WalIndex {
  version(): CommitVersion
  /** The number of commits of all processes that have changed something. It starts again at 2^32. */
  commits(): number
  /** The number of frames in the WAL, checkpointed or not. */
  frames(): number
}

/**
 * Reads the WAL-index of a database that a connection of this process has read from. A read takes some nanoseconds, because
 * SQLite keeps the header in memory that all processes share. `undefined` if the system does not tell where that memory is
 * (Linux does). The result must not be used once the last connection is closed.
 *
 * It does not open the file: closing any descriptor of it would drop this process's locks on it
 * (https://sqlite.org/howtocorrupt.html, §2.2).
 */
export function watchWalIndex(path: string): WalIndex | undefined {
  const address = mappedAt(`${path}-shm`)
  if (address === undefined) return undefined
  const words = new Uint32Array(toArrayBuffer(address, 0, HEADER_BYTES))
  return {
    version: () =>
      Atomics.load(words, CHANGE_COUNTER_WORD) * 2 ** CHECKSUM_BITS +
      (Atomics.load(words, CHECKSUM_WORD) >>> (32 - CHECKSUM_BITS)),
    commits: () => Atomics.load(words, CHANGE_COUNTER_WORD),
    frames: () => Atomics.load(words, FRAMES_WORD),
  }
}

/** The address at which this process has mapped the beginning of a file (proc_pid_maps(5)). */
function mappedAt(path: string): Pointer | undefined {
  let maps: string
  try {
    maps = readFileSync('/proc/self/maps', 'utf8')
  } catch {
    return undefined
  }
  for (const line of maps.split('\n')) {
    const [range = '', , offset] = line.split(' ', 3)
    if (line.endsWith(` ${path}`) && offset === '00000000') return Number.parseInt(range, 16) as Pointer
  }
  return undefined
}
