import { DURATION_BOUNDS_S, type Histogram, histogram } from '../domain/statistics.ts'
import { ERRORS, type Refusal } from './answers.ts'

/** The statistics of requests, in plain numbers. `metrics.ts` makes metrics of them at each scrape. */
export type RequestStatistics = ReturnType<typeof countRequests>

/** Counts requests from now on. No label is a user, a token or a path that a client wrote. */
export function countRequests() {
  /** For each operation, how many answers had a status, and their durations. A status without answers has no element. */
  const operations: Record<string, { statuses: number[]; durationsS: Histogram }> = {}
  // Every kind starts at 0: otherwise the first of a kind would show no increase.
  const kinds = [...Object.keys(ERRORS), 'in_flight_limit']
  const rejected = Object.fromEntries(kinds.map((kind) => [kind, 0])) as Record<Refusal, number>
  /** The caches of tokens by their `Authorization` lines, and of capped lists. A miss reads from the store. */
  const caches = { callers: { hits: 0, misses: 0 }, lists: { hits: 0, misses: 0 } }
  return {
    operations,
    rejected,
    caches,
    /** How many requests are under way. A streamed list is, until its end. */
    inFlight: 0,

    /** Names the operations that `answer` gets. Each starts at 0. */
    setOperations(names: readonly string[]): void {
      for (const name of names) operations[name] = { statuses: [], durationsS: histogram(DURATION_BOUNDS_S) }
    },
    /** Counts an answer when it is ready. A streamed answer is ready when its head and first part are. */
    answer(operation: string, status: number, durationMs: number, error: Refusal | undefined): void {
      const { statuses, durationsS } = operations[operation] as (typeof operations)[string]
      statuses[status] = (statuses[status] ?? 0) + 1
      durationsS.observe(durationMs / 1000)
      if (error !== undefined) rejected[error]++
    },
    lookUp(cache: keyof typeof caches, outcome: 'hits' | 'misses'): void {
      caches[cache][outcome]++
    },
  }
}
