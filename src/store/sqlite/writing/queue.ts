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
  readonly onCommit?: ((writes: number) => void) | undefined
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

/** The writes that wait for a group, their text, and how long they take. */
interface Load {
  writes: number
  textLength: number
  /** The estimated milliseconds per write of a full group. Smaller groups do not tell how long many writes take. */
  writeMs: number
}

/**
 * Commits writes in groups. All writes pass through this queue. When the writer is free, one transaction takes all writes that
 * wait, up to a full group. They share its sync, and each write gets its own result after it.
 */
export function queueWrites(options: QueueOptions) {
  const { monotonicMs, onRefusal } = options
  /** The writes that wait for a group, in the order in which they were asked for. */
  const waiting: WaitingWrite[] = []
  const load: Load = { writes: 0, textLength: 0, writeMs: 0 }
  let committing: WaitingWrite[] = []
  let running: Promise<void> | undefined
  let refusal: AppError | undefined

  const run = async () => {
    while (waiting.length > 0) {
      const startMs = monotonicMs()
      await linger(() => waiting.length)
      committing = takeGroup(waiting, load)
      if (committing.length === 0) break
      const isFull = committing.length === GROUP_MAX_WRITES
      committing = await commitGroup(committing, options)
      if (isFull) load.writeMs = estimate(load.writeMs, (monotonicMs() - startMs) / GROUP_MAX_WRITES)
      while (committing.length > 0) {
        // The queue waits here, because SQLite would block the thread.
        await Bun.sleep(BUSY_RETRY_MS)
        if (refusal === undefined) committing = await commitGroup(committing, options)
        else rejectAll(committing.splice(0), refusal)
      }
    }
    running = undefined
  }

  return {
    /** Resolves to the result of the write once it is durable. Rejects with the refusal of the write, or with its failure. */
    write<C extends Call>(call: C): Promise<ReturnType<Writes[C[0]]>> {
      if (refusal !== undefined) return Promise.reject(refusal)
      const textLength = textLengthOf(call)
      if (!hasRoom(load, textLength)) {
        onRefusal?.('queue_full')
        return Promise.reject(new AppError('store_busy'))
      }
      const { promise, resolve, reject } = Promise.withResolvers<unknown>()
      waiting.push({ call, textLength, askedAtMs: monotonicMs(), resolve, reject })
      load.writes++
      load.textLength += textLength
      running ??= run()
      return promise as Promise<ReturnType<Writes[C[0]]>>
    },
    /** The writes that are not durable yet, those of the current group included. */
    load() {
      const nowMs = monotonicMs()
      const { askedAtMs } = committing[0] ?? waiting[0] ?? { askedAtMs: nowMs }
      return { waitingWrites: committing.length + waiting.length, longestWaitMs: nowMs - askedAtMs }
    },
    /** Refuses all writes from now on, waiting ones included. Resolves when the current group has its results. */
    async refuse(error: AppError): Promise<void> {
      refusal ??= error
      rejectAll(waiting.splice(0), refusal)
      await running
    },
  }
}

/** A full group may always wait. Otherwise nothing would show that the disk is fast again. */
const hasRoom = (load: Load, textLength: number): boolean =>
  !isQueueFull(load, textLength) && (load.writes < GROUP_MAX_WRITES || load.writes * load.writeMs <= QUEUE_MAX_WAIT_MS)

/** The next estimate of `Load.writeMs`. */
const estimate = (writeMs: number, latestMs: number): number =>
  writeMs === 0 ? latestMs : writeMs + LATEST_GROUP_WEIGHT * (latestMs - writeMs)

/** Takes the next writes, up to a full group. */
function takeGroup(waiting: WaitingWrite[], load: Load): WaitingWrite[] {
  const group = { writes: 0, textLength: 0 }
  while (group.writes < waiting.length && !isGroupFull(group)) {
    group.textLength += waiting[group.writes]?.textLength ?? 0
    group.writes++
  }
  load.writes -= group.writes
  load.textLength -= group.textLength
  return waiting.splice(0, group.writes)
}

/**
 * Commits a group and gives its writes their results. A group that found the database locked has changed nothing: returns those
 * of its writes that may wait longer.
 */
async function commitGroup(
  group: readonly WaitingWrite[],
  { writer, monotonicMs, onFailure, onCommit, onRefusal }: QueueOptions,
): Promise<WaitingWrite[]> {
  const calls = group.map(({ call }) => call)
  const result = await writer.perform(calls, monotonicMs()).catch(writerGone)
  if (result === 'done' || !('failure' in result)) {
    onCommit?.(group.length)
    settle(group, result)
    return []
  }
  const error = toError(result.failure)
  if (result.failure.kind !== 'store_busy') {
    onFailure(error)
    rejectAll(group, withoutCause(error))
    return []
  }
  const nowMs = monotonicMs()
  const isLate = ({ askedAtMs }: WaitingWrite) => askedAtMs + BUSY_TIMEOUT_MS <= nowMs
  const late = group.filter(isLate)
  for (const _ of late) onRefusal?.('locked')
  rejectAll(late, error)
  return group.filter((write) => !isLate(write))
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
