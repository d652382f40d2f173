import { AppError } from '../../../domain/error.ts'
import type { StoreObserver } from '../../../domain/store.ts'
import { type GroupOutcome, queueGroups } from '../../group-queue.ts'
import { COMMIT_MS } from './group-commit.ts'
import type { Writer } from './writer.ts'
import { type Call, type GroupResult, toError, type Writes } from './writes.ts'

interface QueueOptions {
  readonly writer: Pick<Writer, 'perform'>
  readonly monotonicMs: () => number
  /** The writer puts the duration of its latest commit there. */
  readonly times: Float64Array
  /** Called with the error of each group that fails. */
  readonly onFailure: (error: unknown) => void
  readonly observer: StoreObserver | undefined
}

/** All writes of a SQLite file pass through this queue. A transaction takes writes of all kinds, in their order. */
export function queueWrites({ writer, monotonicMs, times, onFailure, observer }: QueueOptions) {
  const perform = async (calls: readonly Call[]): Promise<GroupOutcome> => {
    const result = await writer.perform(calls, monotonicMs()).catch(writerGone)
    if (result === 'done' || !('failure' in result)) {
      observer?.recordGroup(calls.length, times[COMMIT_MS] ?? 0)
      return result
    }
    if (result.failure.kind === 'store_busy') return 'locked'
    const error = toError(result.failure)
    onFailure(error)
    throw withoutCause(error)
  }
  const { write, ...queue } = queueGroups({ perform: { all: perform }, observer })
  return {
    ...queue,
    write: <C extends Call>(call: C) =>
      write({ lane: 'all', content: call, textLength: textLengthOf(call) }) as Promise<ReturnType<Writes[C[0]]>>,
  }
}

/** The thread has ended, and nobody knows how far it came. */
const writerGone = (cause: unknown): GroupResult => ({
  failure: { kind: 'store_failed', outcomeIsUnknown: true, reason: String(cause) },
})

/** `onFailure` gets the cause of a failed store once. The errors of the writes do not repeat the cause. */
const withoutCause = (error: unknown): unknown =>
  error instanceof AppError && error.kind === 'store_failed'
    ? new AppError(error.kind, { outcomeIsUnknown: error.outcomeIsUnknown })
    : error

/** The length of all texts of a call behind its name. */
function textLengthOf(call: readonly unknown[]): number {
  let length = 0
  for (let index = 1; index < call.length; index++) {
    const argument = call[index]
    if (typeof argument === 'string') length += argument.length
  }
  return length
}
