/** How often values came, by size: plain numbers, so that noting one costs next to nothing. */
export interface Histogram {
  /** Upper bounds, ascending; a value that equals one is within it. */
  readonly bounds: readonly number[]
  /** How many values came within each bound and above the one before, and last those above all. */
  readonly counts: readonly number[]
  readonly sum: number
  note(value: number): void
}

/** An empty histogram. */
export function histogram(bounds: readonly number[]): Histogram {
  const counts = new Array<number>(bounds.length + 1).fill(0)
  let sum = 0
  return {
    bounds,
    counts,
    get sum() {
      return sum
    },
    note(value) {
      sum += value
      let index = 0
      while (index < bounds.length && value > (bounds[index] as number)) index++
      counts[index] = (counts[index] as number) + 1
    },
  }
}
