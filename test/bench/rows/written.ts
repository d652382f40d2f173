import { countPlants } from '../databases.ts'
import { CONNECTIONS } from '../load/wrk.ts'

/** The runs of wrk in a round: warm-up and measurement. */
const RUNS_PER_ROUND = 2

/**
 * Counts the plants of a database. The returned function counts again, and throws unless the server has created or
 * deleted as many plants as it answered. Requests in flight at the end of a run may count too.
 */
export function watchWrites(path: string) {
  const before = countPlants(path)

  return (name: string, answered: number, rounds: number): void => {
    requireWritten(name, answered, Math.abs(countPlants(path) - before), rounds)
  }
}

/** Throws unless the writes are as many as the answers, or a few more for the requests in flight at the end of a run. */
export function requireWritten(name: string, answered: number, written: number, rounds: number): void {
  if (written >= answered && written <= answered + rounds * RUNS_PER_ROUND * CONNECTIONS) return
  throw new Error(`${name} answered for ${answered} writes and did ${written}`)
}
