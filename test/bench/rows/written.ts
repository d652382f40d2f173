import { countPlants } from '../databases.ts'
import { CONNECTIONS } from '../load/wrk.ts'

/** Runs of wrk for a round: the warm-up and what is measured. */
const RUNS_PER_ROUND = 2

/**
 * Notes how many plants a database holds. What it returns rejects unless as many were created or deleted since as
 * were answered for; what was under way when a run ended may have been done besides.
 */
export function watchWrites(path: string) {
  const before = countPlants(path)

  return (name: string, answered: number, rounds: number): void => {
    requireWritten(name, answered, Math.abs(countPlants(path) - before), rounds)
  }
}

/** Throws unless as many writes were done as were answered for, and what was under way when a run ended. */
export function requireWritten(name: string, answered: number, written: number, rounds: number): void {
  if (written >= answered && written <= answered + rounds * RUNS_PER_ROUND * CONNECTIONS) return
  throw new Error(`${name} answered for ${answered} writes and did ${written}`)
}
