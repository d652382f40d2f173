import { histogram } from './histogram.ts'

/** Writes that are not durable yet. */
export interface StoreLoad {
  readonly waitingWrites: number
  /** For how long the first of them has waited; 0 where none does. */
  readonly longestWaitMs: number
}

/** What a store takes on disk. */
export interface StoreSizes {
  readonly databaseBytes: number
  /** Of the log in which writes are before they are in the database. */
  readonly walBytes: number
}

/** How much a store holds, tokens that were revoked or have expired included. */
export interface StoreCounts {
  readonly plants: number
  readonly tokens: number
}

/** What those who operate a store want to know of it. No client is told. */
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

/** Told of what a store does, as it does it. It must cost next to nothing, and must not throw. */
export interface StoreObserver {
  /** So many writes became durable together; of the time it took, `syncMs` was making them durable. */
  noteGroup(writes: number, syncMs: number): void
  /** A write was refused because too many wait, or because another process kept its lock too long. */
  noteRefusal(reason: WriteRefusal): void
}

/** Upper bounds of the writes in a group, and of the time that making it durable takes, in seconds. */
const GROUP_BOUNDS = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512]
const SYNC_BOUNDS_S = [0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5]

/** What a store has done since its observer was made, in plain numbers. */
export type WriteStatistics = ReturnType<typeof countWrites>

/** Counts what a store does. */
export function countWrites() {
  const refusals: Record<WriteRefusal, number> = { queue_full: 0, locked: 0 }
  const groups = histogram(GROUP_BOUNDS)
  const syncsS = histogram(SYNC_BOUNDS_S)
  return {
    groups,
    syncsS,
    refusals: refusals as Readonly<Record<WriteRefusal, number>>,
    observer: {
      noteGroup(writes, syncMs) {
        groups.note(writes)
        syncsS.note(syncMs / 1000)
      },
      noteRefusal(reason) {
        refusals[reason]++
      },
    } satisfies StoreObserver,
  }
}
