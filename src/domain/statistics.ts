import { histogram } from './histogram.ts'

/** Writes that are not durable yet. */
export interface StoreLoad {
  readonly waitingWrites: number
  /** How long the first of them has waited, or 0 if none waits. */
  readonly longestWaitMs: number
}

/** How much room a store takes on disk. */
export interface StoreSizes {
  readonly databaseBytes: number
  /** The size of the write-ahead log, which holds the writes that are not in the database file yet. */
  readonly walBytes: number
}

/** What operators of a store want to know. Clients never get it. */
export interface StoreStatistics {
  /** The writes that wait now. Costs no I/O. */
  load(): StoreLoad
  /** The sizes now. Takes some microseconds, however large they are. */
  sizes(): Promise<StoreSizes>
}

/** Why a write was refused before it began. */
const WRITE_REFUSALS = ['queue_full', 'locked'] as const
export type WriteRefusal = (typeof WRITE_REFUSALS)[number]

/** A store calls it with each thing that it does. It must be fast and must not throw. */
export interface StoreObserver {
  /** A group commit has made so many writes durable. The commit took `syncMs`. */
  recordGroup(writes: number, syncMs: number): void
  /** A write was refused because too many wait, or because another process kept the database locked. */
  recordRefusal(reason: WriteRefusal): void
}

/** Upper bounds of histograms: of the writes in a group commit, and of the seconds that a commit takes. */
const GROUP_BOUNDS = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512]
const SYNC_BOUNDS_S = [0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5]

/** The writes of a store since its observer was made, in plain numbers. */
export type WriteStatistics = ReturnType<typeof countWrites>

/** Counts the writes of a store. */
export function countWrites() {
  const refusals: Record<WriteRefusal, number> = { queue_full: 0, locked: 0 }
  const groups = histogram(GROUP_BOUNDS)
  const syncsS = histogram(SYNC_BOUNDS_S)
  return {
    groups,
    syncsS,
    refusals: refusals as Readonly<Record<WriteRefusal, number>>,
    observer: {
      recordGroup(writes, syncMs) {
        groups.observe(writes)
        syncsS.observe(syncMs / 1000)
      },
      recordRefusal(reason) {
        refusals[reason]++
      },
    } satisfies StoreObserver,
  }
}
