import { nextTurn } from '../domain/next-turn.ts'

/** After this many plants, memory is collected. Without it the runtime takes twice as much memory for a million plants. */
const COLLECT_EVERY_PLANTS = 100_000

/** Returns a function that pauses between the batches of a long task: for signals, and now and then to collect memory. */
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
