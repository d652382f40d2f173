import { ERRORS, type HttpErrorKind } from './answers.ts'
import type { RequestContext } from './request-context.ts'

const GROUP_BOUNDS = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512]
/** Upper bounds of durations: a cached list takes microseconds, and no request or commit waits for more than a few seconds. */
const DURATION_BOUNDS_S = [0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5]

/** Counts requests in plain numbers, of which `metrics.ts` makes metrics. No label is a user, a token, or a path of a client. */
export class RequestStatistics {
  /** For each operation, how many answers had a status, and their durations. A status without answers has no property. */
  readonly operations: Record<string, { statuses: Record<number, number>; durationsS: Histogram }> = {}
  // Every kind starts at 0: otherwise the first of a kind would show no increase.
  readonly rejected = Object.fromEntries(Object.keys(ERRORS).map((kind) => [kind, 0])) as Record<HttpErrorKind, number>
  /** The caches of tokens by their texts, and of capped lists. A miss reads from the store. */
  readonly caches = { hits: { callers: 0, lists: 0 }, misses: { callers: 0, lists: 0 } }
  /** Failed reads of the keys. `undefined` without a provider. */
  keyFailures?: number
  /** How many requests are under way. A streamed list is, until its end. */
  inFlight = 0
  /** The bytes of all bodies that the runtime got to send, without heads. A streamed list counts part by part. */
  bodyBytes = 0

  /** Counts an answer when it is ready. A streamed answer is ready when its head and first part are. */
  answer({ operation, error }: AnsweredRequest, status: number, durationMs: number, bodyBytes: number): void {
    this.operations[operation] ??= { statuses: {}, durationsS: new Histogram(DURATION_BOUNDS_S) }
    const { statuses, durationsS } = this.operations[operation]
    statuses[status] = (statuses[status] ?? 0) + 1
    durationsS.observe(durationMs / 1000)
    if (error !== undefined) this.rejected[error]++
    this.bodyBytes += bodyBytes
  }

  lookUp(cache: 'callers' | 'lists', outcome: 'hits' | 'misses'): void {
    this.caches[outcome][cache]++
  }
}

type AnsweredRequest = Pick<RequestContext, 'operation' | 'error'>

/** An `EngineObserver` that counts. */
export class WriteStatistics {
  readonly groups = new Histogram(GROUP_BOUNDS)
  readonly syncsS = new Histogram(DURATION_BOUNDS_S)
  readonly refusals = { queue_full: 0, locked: 0 }

  recordGroup(writes: number, syncMs: number): void {
    this.groups.observe(writes)
    this.syncsS.observe(syncMs / 1000)
  }

  recordRefusal(reason: 'queue_full' | 'locked'): void {
    this.refusals[reason]++
  }
}

/** How often values were observed, by size. It is plain numbers, so that a request can afford it. */
export class Histogram {
  /** How many values are within each bound and above the bound before, then how many are above all bounds. */
  readonly counts: number[]
  sum = 0

  /** The upper bounds ascend. A value that equals one is within it. */
  constructor(readonly bounds: readonly number[]) {
    this.counts = new Array<number>(bounds.length + 1).fill(0)
  }

  observe(value: number): void {
    this.sum += value
    let index = 0
    while (index < this.bounds.length && value > (this.bounds[index] as number)) index++
    this.counts[index] = (this.counts[index] as number) + 1
  }
}
