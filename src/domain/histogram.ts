/** How often values were observed, by size. It is plain numbers, so that a request can afford it. */
export interface Histogram {
  /** Upper bounds, ascending; a value that equals one is within it. */
  readonly bounds: readonly number[]
  /** How many values are within each bound and above the bound before, then how many are above all bounds. */
  readonly counts: readonly number[]
  readonly sum: number
  observe(value: number): void
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
    observe(value) {
      sum += value
      let index = 0
      while (index < bounds.length && value > (bounds[index] as number)) index++
      counts[index] = (counts[index] as number) + 1
    },
  }
}
