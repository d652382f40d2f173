import { histogram } from './histogram.ts'

/** Writes that are not durable yet. */
export interface StoreLoad {
  readonly waitingWrites: number
  /** How long the first of them has waited, or 0 if none waits. */
  readonly longestWaitMs: number
}

/** What a store takes on disk. */
export interface StoreSizes {
  readonly databaseBytes: number
  /** The size of the write-ahead log, which holds the writes that are not in the database file yet. */
  readonly walBytes: number
}

/** How much a store holds, tokens that were revoked or have expired included. */
export interface StoreCounts {
  readonly plants: number
  readonly tokens: number
}

/** What operators of a store want to know. Clients never get it. */
export interface StoreStatistics {
  /** What waits at the moment. Costs no I/O. */
  load(): StoreLoad
  /** What is on disk at the moment, in some microseconds at any size. */
  sizes(): Promise<StoreSizes>
  /**
   * Counts in small steps with pauses between them, so that nobody waits for it and it takes a small share of a core: the
   * more there is, the longer it takes. What changes meanwhile may count or not. `previous`, what the last call has
   * returned, is returned again where nothing has changed since. Rejects with `store_busy` once the store is closing.
   */
  count(previous?: StoreCounts): Promise<StoreCounts>
}

/** Why a write was refused before it was begun. */
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
