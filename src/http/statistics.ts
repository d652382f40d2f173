import { type Histogram, histogram } from '../domain/histogram.ts'
import type { RequestContext } from './context.ts'
import { ERRORS, type HttpErrorKind } from './errors.ts'
import { OPERATIONS, type Operation } from './operations.ts'

/** Why a request got an error: the error's kind, or that --max-in-flight had no room for it. */
export type Refusal = HttpErrorKind | 'in_flight_limit'

/** What is remembered so that it need not be read from the store again. */
const CACHES = ['callers', 'lists'] as const
export type Cache = (typeof CACHES)[number]

/** Upper bounds of durations: a remembered list takes microseconds, and nothing of ours longer than a few seconds. */
const DURATION_BOUNDS_S = [0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5]
const STATUS_MAX = 599

/** What became of a request. */
export interface Answered {
  readonly operation: Operation
  readonly status: number
  /** Until the answer was there, or of a streamed one its head and first part. */
  readonly durationMs: number
}

/** What is counted of requests, in plain numbers: whoever is asked for them makes metrics of them. */
export type RequestStatistics = ReturnType<typeof countRequests>

/** Counts requests from now on. No figure is of a user, a token or a path of a client's. */
export function countRequests() {
  const operations = Object.fromEntries(
    OPERATIONS.map((operation) => [operation, { statuses: statusCounts(), durationsS: histogram(DURATION_BOUNDS_S) }]),
  ) as Readonly<Record<Operation, OperationStatistics>>
  // From 0 on, or the first of a kind would be no change that anybody could see.
  const rejected = Object.fromEntries([...Object.keys(ERRORS), 'in_flight_limit'].map((kind) => [kind, 0])) as Record<
    Refusal,
    number
  >
  const caches = { callers: { hits: 0, misses: 0 }, lists: { hits: 0, misses: 0 } } satisfies Record<Cache, unknown>
  let inFlight = 0

  return {
    operations,
    rejected: rejected as Readonly<typeof rejected>,
    caches: caches as Readonly<Record<Cache, { readonly hits: number; readonly misses: number }>>,
    /** Requests under way, streamed lists to their end. */
    inFlight: () => inFlight,

    /** A request has come. */
    begin(): void {
      inFlight++
    },
    /** It was answered, or its streamed answer begins. */
    answer(context: RequestContext, { operation, status, durationMs }: Answered): void {
      const { statuses, durationsS } = operations[operation]
      statuses[status] = (statuses[status] ?? 0) + 1
      durationsS.observe(durationMs / 1000)
      const { refusal } = context
      if (refusal !== undefined) {
        const reason = refusal === 'store_busy' && context.isPastLimit ? 'in_flight_limit' : refusal
        rejected[reason]++
      }
      if (context.isStreamed) context.onStreamed = () => inFlight--
      else inFlight--
    },
    /** Something was remembered, and need not be read. */
    hit(cache: Cache): void {
      caches[cache].hits++
    },
    /** Something was read from the store. */
    miss(cache: Cache): void {
      caches[cache].misses++
    },
  }
}

interface OperationStatistics {
  /** How many answers had a status, by the status. */
  readonly statuses: number[]
  readonly durationsS: Histogram
}

const statusCounts = (): number[] => new Array<number>(STATUS_MAX + 1).fill(0)
