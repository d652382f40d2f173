import { DURATION_BOUNDS_S, type Histogram, histogram } from '../domain/statistics.ts'
import { ERRORS, type Refusal } from './answers.ts'

/** The caches: of tokens by their `Authorization` lines, and of capped lists. */
type Cache = 'callers' | 'lists'

/** An answered request. */
interface Answered {
  readonly operation: string
  readonly status: number
  /** Until the answer was ready; for a streamed answer, until its head and first part were. */
  readonly durationMs: number
  readonly error: Refusal | undefined
}

/** The statistics of requests, in plain numbers. `metrics.ts` makes metrics of them at each scrape. */
export type RequestStatistics = ReturnType<typeof countRequests>

/** Counts requests from now on. No label is a user, a token or a path that a client wrote. */
export function countRequests() {
  /** For each operation, how many answers had a status, and their durations. A status without answers has no element. */
  const operations: Record<string, { statuses: number[]; durationsS: Histogram }> = {}
  // Every kind starts at 0: otherwise the first of a kind would show no increase.
  const kinds = [...Object.keys(ERRORS), 'in_flight_limit']
  const rejected = Object.fromEntries(kinds.map((kind) => [kind, 0])) as Record<Refusal, number>
  const caches = { callers: { hits: 0, misses: 0 }, lists: { hits: 0, misses: 0 } } satisfies Record<Cache, unknown>
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
    /** A request has come. */
    begin(): void {
      this.inFlight++
    },
    /** A request was answered, or its streamed answer begins. */
    answer({ operation, status, durationMs, error }: Answered): void {
      const { statuses, durationsS } = operations[operation] as (typeof operations)[string]
      statuses[status] = (statuses[status] ?? 0) + 1
      durationsS.observe(durationMs / 1000)
      if (error !== undefined) rejected[error]++
    },
    /** The answer to a request has ended. */
    end(): void {
      this.inFlight--
    },
    /** A cache had what a request needs. */
    hit(cache: Cache): void {
      caches[cache].hits++
    },
    /** A request had to read from the store. */
    miss(cache: Cache): void {
      caches[cache].misses++
    },
  }
}
