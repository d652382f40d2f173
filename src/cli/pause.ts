import { nextTurn } from '../domain/next-turn.ts'

/** Plants after which memory is given back. Left to itself the runtime takes twice as much for a million of them. */
const COLLECT_EVERY_PLANTS = 100_000

/**
 * Pauses between batches of a long task: signals are heard then, and what earlier batches have left in memory is
 * given back now and then.
 */
export function pauses() {
  let plants = 0
  return async (batchPlants: number, pauseMs = 0): Promise<void> => {
    plants += batchPlants
    if (plants >= COLLECT_EVERY_PLANTS) {
      plants = 0
      Bun.gc(true)
    }
    await (pauseMs > 0 ? Bun.sleep(pauseMs) : nextTurn())
  }
}
