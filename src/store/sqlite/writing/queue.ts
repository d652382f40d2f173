import { AppError } from '../../../domain/error.ts'
import type { StoreObserver } from '../../../domain/store.ts'
import { GROUP_MAX_WRITES, isGroupFull, isQueueFull } from '../../limits.ts'
import { linger } from '../../linger.ts'
import { BUSY_TIMEOUT_MS } from '../connection.ts'
import type { Writer } from './writer.ts'
import { type Call, type GroupResult, toError, type WriteResults, type Writes } from './writes.ts'

/** How long a write may have to wait. The queue estimates that from the latest full groups, and refuses further writes. */
export const QUEUE_MAX_WAIT_MS = 500
/** The weight of the latest full group in the estimate. */
const LATEST_GROUP_WEIGHT = 0.2
/** How long the queue waits before it tries a locked database again. */
const BUSY_RETRY_MS = 5

interface QueueOptions {
  readonly writer: Pick<Writer, 'perform'>
  readonly monotonicMs: () => number
  /** Called with the error of each group that fails. */
  readonly onFailure: (error: unknown) => void
  /** Called with the number of writes of each group that was committed. */
  readonly onCommit?: (writes: number) => void
  readonly onRefusal?: StoreObserver['recordRefusal'] | undefined
}

/** A write that waits for its result. */
interface WaitingWrite {
  readonly call: Call
  readonly textLength: number
  readonly askedAtMs: number
  readonly resolve: (value: unknown) => void
  readonly reject: (error: unknown) => void
}

/**
 * Commits writes in groups. All writes pass through this queue. When the writer is free, one transaction takes all writes that
 * wait, up to a full group. They share its sync, and each write gets its own result after it.
 */
export function queueWrites({ writer, monotonicMs, onFailure, onCommit, onRefusal }: QueueOptions) {
  const waiting: WaitingWrite[] = []
  let waitingTextLength = 0
  /** The estimated milliseconds per write of a full group. Smaller groups do not tell how long many writes take. */
  let writeMs = 0
  let committing: readonly WaitingWrite[] = []
  let running: Promise<void> | undefined
  let refusal: AppError | undefined

  const isFull = () => isGroupFull({ writes: waiting.length, textLength: waitingTextLength })
  const hasRoom = (forTextLength: number): boolean => {
    if (isQueueFull({ writes: waiting.length, textLength: waitingTextLength }, forTextLength)) return false
    // A full group may always wait. Otherwise nothing would show that the disk is fast again.
    return waiting.length < GROUP_MAX_WRITES || waiting.length * writeMs <= QUEUE_MAX_WAIT_MS
  }
  const takeFirst = (count: number): readonly WaitingWrite[] => {
    const taken = waiting.splice(0, count)
    for (const write of taken) waitingTextLength -= write.textLength
    return taken
  }
  const putBack = (writes: readonly WaitingWrite[]) => {
    waiting.unshift(...writes)
    for (const write of writes) waitingTextLength += write.textLength
  }

  const run = async () => {
    while (waiting.length > 0) {
      const startMs = monotonicMs()
      await linger(() => waiting.length, isFull)
      const group = takeFirst(groupSize(waiting))
      if (group.length > 0) await commit(group)
      if (group.length < GROUP_MAX_WRITES) continue
      const latestMs = (monotonicMs() - startMs) / group.length
      writeMs = writeMs === 0 ? latestMs : writeMs + LATEST_GROUP_WEIGHT * (latestMs - writeMs)
    }
    running = undefined
  }

  const commit = async (group: readonly WaitingWrite[]) => {
    committing = group
    const calls = group.map(({ call }) => call)
    const result = await writer.perform(calls, monotonicMs()).catch(writerGone)
    committing = []
    if (result === 'done' || !('failure' in result)) {
      onCommit?.(group.length)
      return settle(group, result)
    }
    const error = toError(result.failure)
    if (result.failure.kind === 'store_busy') return retryLater(group, error)
    onFailure(error)
    rejectAll(group, withoutCause(error))
  }

  /** The group found the database locked and has changed nothing. Its writes wait on, unless they have waited for too long. */
  const retryLater = async (group: readonly WaitingWrite[], error: Error) => {
    if (refusal !== undefined) return rejectAll(group, refusal)
    const nowMs = monotonicMs()
    // The writes are in the order in which they were asked for, so the late ones are the first.
    const late = group.filter(({ askedAtMs }) => askedAtMs + BUSY_TIMEOUT_MS <= nowMs)
    for (const _ of late) onRefusal?.('locked')
    rejectAll(late, error)
    if (late.length === group.length) return
    putBack(group.slice(late.length))
    // The queue waits here, because SQLite would block the thread.
    await Bun.sleep(BUSY_RETRY_MS)
  }

  return {
    /** Resolves to the result of the write once it is durable. Rejects with the refusal of the write, or with its failure. */
    write: <C extends Call>(call: C): Promise<ReturnType<Writes[C[0]]>> =>
      new Promise((resolve, reject) => {
        if (refusal !== undefined) return reject(refusal)
        const textLength = textLengthOf(call)
        if (!hasRoom(textLength)) {
          onRefusal?.('queue_full')
          return reject(new AppError('store_busy'))
        }
        waiting.push({
          call,
          textLength,
          askedAtMs: monotonicMs(),
          resolve: resolve as WaitingWrite['resolve'],
          reject,
        })
        waitingTextLength += textLength
        running ??= run()
      }),
    /** The writes that are not durable yet, those of the current group included. */
    load() {
      const nowMs = monotonicMs()
      const { askedAtMs } = committing[0] ?? waiting[0] ?? { askedAtMs: nowMs }
      return { waitingWrites: committing.length + waiting.length, longestWaitMs: nowMs - askedAtMs }
    },
    /** Refuses all writes from now on, waiting ones included. Resolves when the current group has its results. */
    async refuse(error: AppError): Promise<void> {
      refusal ??= error
      rejectAll(takeFirst(waiting.length), refusal)
      await running
    },
  }
}

/** How many of the waiting writes make the next group. */
function groupSize(waiting: readonly WaitingWrite[]): number {
  const group = { writes: 0, textLength: 0 }
  while (group.writes < waiting.length && !isGroupFull(group)) {
    group.textLength += waiting[group.writes]?.textLength ?? 0
    group.writes++
  }
  return group.writes
}

function settle(group: readonly WaitingWrite[], results: 'done' | WriteResults): void {
  if (results !== 'done') {
    for (const [index, kind, message] of results.refused) group[index]?.reject(new AppError(kind, { message }))
    for (const [index, value] of results.returned) group[index]?.resolve(value)
  }
  // A promise that has its result already ignores this.
  for (const { resolve } of group) resolve(undefined)
}

function rejectAll(writes: readonly WaitingWrite[], error: unknown): void {
  for (const { reject } of writes) reject(error)
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
