/** Why a write was refused before it began: too many wait, or another process kept the database locked. */
export type WriteRefusal = 'queue_full' | 'locked'

/** A store calls it with each thing that it does. It must be fast and must not throw. */
export interface StoreObserver {
  /** A group commit has made so many writes durable. The commit took `syncMs`. */
  recordGroup(writes: number, syncMs: number): void
  /** A write was refused. */
  recordRefusal(reason: WriteRefusal): void
}

/** Upper bounds of the writes in a group commit. */
const GROUP_BOUNDS = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512]
/** Upper bounds of durations: a cached list takes microseconds, and no request or commit waits for more than a few seconds. */
export const DURATION_BOUNDS_S = [
  0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5,
]

/** The writes of a store since its observer was made, in plain numbers. */
export type WriteStatistics = ReturnType<typeof countWrites>

/** A `StoreObserver` that counts. */
export function countWrites() {
  const refusals: Record<WriteRefusal, number> = { queue_full: 0, locked: 0 }
  const groups = histogram(GROUP_BOUNDS)
  const syncsS = histogram(DURATION_BOUNDS_S)
  return {
    groups,
    syncsS,
    refusals,
    recordGroup(writes: number, syncMs: number): void {
      groups.observe(writes)
      syncsS.observe(syncMs / 1000)
    },
    recordRefusal(reason: WriteRefusal): void {
      refusals[reason]++
    },
  }
}

/** How often values were observed, by size. It is plain numbers, so that a request can afford it. */
export type Histogram = ReturnType<typeof histogram>

/** An empty histogram. */
export const histogram = (bounds: readonly number[]) => ({
  /** Upper bounds, ascending; a value that equals one is within it. */
  bounds,
  /** How many values are within each bound and above the bound before, then how many are above all bounds. */
  counts: new Array<number>(bounds.length + 1).fill(0),
  sum: 0,
  observe(value: number): void {
    this.sum += value
    let index = 0
    while (index < bounds.length && value > (bounds[index] as number)) index++
    this.counts[index] = (this.counts[index] as number) + 1
  },
})
