import { type Pointer, toArrayBuffer } from 'bun:ffi'
import { readFileSync } from 'node:fs'

/**
 * Words of the WAL-index header (https://sqlite.org/walformat.html#the_wal_index_header). The counter of transactions
 * and the checksum of the last frame change with every commit, by whichever process, and with nothing else; either alone
 * could, after the recovery of an index that a killed process left half-written, be what it was.
 */
const HEADER_BYTES = 48
const CHANGE_COUNTER_WORD = 2
const FRAMES_WORD = 4
const CHECKSUM_WORD = 6
/** Of the checksum so much goes into a stamp that it stays an integer that a double holds exactly. */
const CHECKSUM_BITS = 21

/** A number for the state of a database: it is another one after every commit. */
export type Stamp = number

/** What the WAL-index says at the moment. */
export interface WalIndex {
  stamp(): Stamp
  /** Commits so far that have changed something, by whomever; it begins anew after 2^32. */
  commits(): number
  /** Frames that the WAL holds, checkpointed or not. */
  frames(): number
}

/**
 * Returns a way to read the WAL-index of a database that a connection of this process has read from: it costs some
 * nanoseconds, because SQLite keeps the header in memory that all processes share. `undefined` where the system does
 * not say where that is (it does on Linux). The way must not be used once the last connection is closed.
 *
 * The file is deliberately not opened once more: closing any descriptor of it would drop this process's locks on it
 * (https://sqlite.org/howtocorrupt.html, §2.2).
 */
export function watchWalIndex(path: string): WalIndex | undefined {
  const address = mappedAt(`${path}-shm`)
  if (address === undefined) return undefined
  const words = new Uint32Array(toArrayBuffer(address, 0, HEADER_BYTES))
  return {
    stamp: () =>
      Atomics.load(words, CHANGE_COUNTER_WORD) * 2 ** CHECKSUM_BITS +
      (Atomics.load(words, CHECKSUM_WORD) >>> (32 - CHECKSUM_BITS)),
    commits: () => Atomics.load(words, CHANGE_COUNTER_WORD),
    frames: () => Atomics.load(words, FRAMES_WORD),
  }
}

/** Where this process has the beginning of a file in its memory (proc_pid_maps(5)). */
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
