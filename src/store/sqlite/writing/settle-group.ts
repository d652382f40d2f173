import { AppError } from '../../../domain/error.ts'
import type { StoreObserver } from '../../../domain/statistics.ts'
import { BUSY_TIMEOUT_MS } from '../connection.ts'
import { type GroupResult, toError, type WriteResults } from './group-result.ts'
import type { WaitingWrite } from './waiting-writes.ts'

/** Callbacks for the results of groups. */
export interface GroupEvents {
  /** Called with the error of each group that fails. */
  readonly onFailure: (error: unknown) => void
  /** Called with the number of writes of each group that was committed. */
  readonly onCommit?: ((writes: number) => void) | undefined
  readonly onRefusal?: StoreObserver['recordRefusal'] | undefined
}

/**
 * Gives the writes of a group their results. A group that found the database locked has changed nothing: returns those of its
 * writes that may wait longer.
 */
export function settleGroup(
  group: readonly WaitingWrite[],
  result: GroupResult,
  { onFailure, onCommit, onRefusal }: GroupEvents,
  nowMs: number,
): readonly WaitingWrite[] {
  if (result === 'done' || !('failure' in result)) {
    onCommit?.(group.length)
    settleEach(group, result)
    return []
  }
  const error = toError(result.failure)
  if (result.failure.kind !== 'store_busy') {
    onFailure(error)
    rejectAll(group, withoutCause(error))
    return []
  }
  const isLate = ({ askedAtMs }: WaitingWrite) => askedAtMs + BUSY_TIMEOUT_MS <= nowMs
  const late = group.filter(isLate)
  for (const _ of late) onRefusal?.('locked')
  rejectAll(late, error)
  return group.filter((write) => !isLate(write))
}

/** Rejects writes with the same error. */
export function rejectAll(writes: readonly WaitingWrite[], error: unknown): void {
  for (const { reject } of writes) reject(error)
}

function settleEach(group: readonly WaitingWrite[], results: 'done' | WriteResults): void {
  if (results !== 'done') {
    for (const [index, kind, message] of results.refused) group[index]?.reject(new AppError(kind, { message }))
    for (const [index, value] of results.returned) group[index]?.resolve(value)
  }
  // A promise that has its result already ignores this.
  for (const { resolve } of group) resolve(undefined)
}

/** `onFailure` gets the cause of a failed store once. The errors of the writes do not repeat the cause. */
const withoutCause = (error: unknown): unknown =>
  error instanceof AppError && error.kind === 'store_failed'
    ? new AppError(error.kind, { outcomeIsUnknown: error.outcomeIsUnknown })
    : error
