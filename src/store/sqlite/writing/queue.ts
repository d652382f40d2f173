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

/** The writes that wait for a group, in the order in which they were asked for. */
function waitingWrites() {
  const waiting: WaitingWrite[] = []
  const load = { writes: 0, textLength: 0 }
  /** The estimated milliseconds per write of a full group. Smaller groups do not tell how long many writes take. */
  let writeMs = 0

  const takeFirst = (count: number): readonly WaitingWrite[] => {
    const taken = waiting.splice(0, count)
    load.writes = waiting.length
    for (const write of taken) load.textLength -= write.textLength
    return taken
  }

  return {
    load,
    first: () => waiting[0],
    hasRoom(textLength: number): boolean {
      if (isQueueFull(load, textLength)) return false
      // A full group may always wait. Otherwise nothing would show that the disk is fast again.
      return waiting.length < GROUP_MAX_WRITES || waiting.length * writeMs <= QUEUE_MAX_WAIT_MS
    },
    add(write: WaitingWrite): void {
      load.writes = waiting.push(write)
      load.textLength += write.textLength
    },
    /** Puts writes of a group back, in front of the others. */
    putBack(writes: readonly WaitingWrite[]): void {
      load.writes = waiting.unshift(...writes)
      for (const write of writes) load.textLength += write.textLength
    },
    /** Takes the next writes, up to a full group. */
    takeGroup(): readonly WaitingWrite[] {
      const group = { writes: 0, textLength: 0 }
      while (group.writes < waiting.length && !isGroupFull(group)) {
        group.textLength += waiting[group.writes]?.textLength ?? 0
        group.writes++
      }
      return takeFirst(group.writes)
    },
    takeAll: () => takeFirst(waiting.length),
    /** Records how long a group took. */
    recordDuration(writes: number, groupMs: number): void {
      if (writes < GROUP_MAX_WRITES) return
      const latestMs = groupMs / writes
      writeMs = writeMs === 0 ? latestMs : writeMs + LATEST_GROUP_WEIGHT * (latestMs - writeMs)
    },
  }
}

/**
 * Commits writes in groups. All writes pass through this queue. When the writer is free, one transaction takes all writes that
 * wait, up to a full group. They share its sync, and each write gets its own result after it.
 */
export function queueWrites(options: QueueOptions) {
  const { monotonicMs, onRefusal } = options
  const waiting = waitingWrites()
  let committing: readonly WaitingWrite[] = []
  let running: Promise<void> | undefined
  let refusal: AppError | undefined

  const run = async () => {
    while (waiting.load.writes > 0) {
      const startMs = monotonicMs()
      await linger(
        () => waiting.load.writes,
        () => isGroupFull(waiting.load),
      )
      committing = waiting.takeGroup()
      const locked = committing.length > 0 ? await commitGroup(committing, options) : []
      const size = committing.length
      committing = []
      waiting.recordDuration(size, monotonicMs() - startMs)
      if (locked.length === 0) continue
      if (refusal !== undefined) rejectAll(locked, refusal)
      else {
        waiting.putBack(locked)
        // The queue waits here, because SQLite would block the thread.
        await Bun.sleep(BUSY_RETRY_MS)
      }
    }
    running = undefined
  }

  return {
    /** Resolves to the result of the write once it is durable. Rejects with the refusal of the write, or with its failure. */
    write: <C extends Call>(call: C): Promise<ReturnType<Writes[C[0]]>> =>
      new Promise((done, reject) => {
        if (refusal !== undefined) return reject(refusal)
        const textLength = textLengthOf(call)
        if (!waiting.hasRoom(textLength)) {
          onRefusal?.('queue_full')
          return reject(new AppError('store_busy'))
        }
        const resolve = done as WaitingWrite['resolve']
        waiting.add({ call, textLength, askedAtMs: monotonicMs(), resolve, reject })
        running ??= run()
      }),
    /** The writes that are not durable yet, those of the current group included. */
    load() {
      const nowMs = monotonicMs()
      const { askedAtMs } = committing[0] ?? waiting.first() ?? { askedAtMs: nowMs }
      return { waitingWrites: committing.length + waiting.load.writes, longestWaitMs: nowMs - askedAtMs }
    },
    /** Refuses all writes from now on, waiting ones included. Resolves when the current group has its results. */
    async refuse(error: AppError): Promise<void> {
      refusal ??= error
      rejectAll(waiting.takeAll(), refusal)
      await running
    },
  }
}

/**
 * Commits a group and gives its writes their results. A group that found the database locked has changed nothing: returns those
 * of its writes that may wait longer.
 */
async function commitGroup(
  group: readonly WaitingWrite[],
  { writer, monotonicMs, onFailure, onCommit, onRefusal }: QueueOptions,
): Promise<readonly WaitingWrite[]> {
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
