import { AppError } from '../../domain/error.ts'
import { nextTurn } from '../../domain/next-turn.ts'
import type { StoreLoad, StoreObserver } from '../../domain/statistics.ts'
import { GROUP_MAX_TEXT_LENGTH, GROUP_MAX_WRITES, QUEUE_MAX_TEXT_LENGTH, QUEUE_MAX_WRITES } from '../limits.ts'
import { BUSY_TIMEOUT_MS } from './connection.ts'
import { type Failure, toError, type WriteResults } from './group-result.ts'
import type { Versions } from './versions/versions.ts'
import type { Writer } from './writer.ts'
import type { Call, Writes } from './writes.ts'

/** How long a write may have to wait, by what full groups have taken lately. What comes then is refused. */
export const QUEUE_MAX_WAIT_MS = 500
/** Turns of the event loop, each with whatever requests have come, for which a group may wait before it begins. */
const GATHER_TURNS_MAX = 2
/** How much of what a write is thought to take is what it took in the last full group. */
const LAST_GROUP_WEIGHT = 0.2
/** How often it is looked whether a lock is gone. */
const BUSY_RETRY_MS = 5

interface Waiting {
  readonly call: Call
  readonly textLength: number
  /** Until when a lock is waited for. */
  readonly deadlineMs: number
  readonly resolve: (value: unknown) => void
  readonly reject: (error: unknown) => void
}

/** Told of groups that were committed, and of writes that were refused. */
interface QueueObserver extends Pick<StoreObserver, 'recordRefusal'> {
  recordGroup(writes: number): void
}

/** The writes that wait for the disk, and the one way to it. */
export type WriteQueue = ReturnType<typeof queueWrites>

/**
 * Commits writes in groups: all that wait when the writer becomes free share a transaction and its sync, and each gets
 * an answer of its own after it. `onFailure` is told each group that failed.
 */
export function queueWrites(
  writer: Pick<Writer, 'perform'>,
  versions: Versions | undefined,
  onFailure: (error: unknown) => void,
  observer?: QueueObserver,
  monotonicMs = () => performance.now(),
) {
  const waiting: Waiting[] = []
  let committing: readonly Waiting[] = []
  let waitingTextLength = 0
  let running: Promise<void> | undefined
  let refusal: AppError | undefined
  /** What a write of a full group takes, in milliseconds, once there was one: smaller ones say nothing of what many would take. */
  let writeMs: number | undefined

  const run = async () => {
    while (waiting.length > 0) {
      const startMs = monotonicMs()
      await gather()
      const group = takeGroup()
      if (group.length > 0) await commit(group)
      if (group.length === GROUP_MAX_WRITES) noteDuration((monotonicMs() - startMs) / group.length)
    }
    running = undefined
  }

  const hasFullGroup = () => waiting.length >= GROUP_MAX_WRITES || waitingTextLength >= GROUP_MAX_TEXT_LENGTH

  const noteDuration = (lastMs: number) => {
    writeMs = writeMs === undefined ? lastMs : writeMs + LAST_GROUP_WEIGHT * (lastMs - writeMs)
  }

  const isFull = (textLength: number) =>
    waiting.length >= QUEUE_MAX_WRITES ||
    (waitingTextLength > 0 && waitingTextLength + textLength > QUEUE_MAX_TEXT_LENGTH) ||
    // Never fewer than a full group wait, or none would tell that the disk is faster again.
    (waiting.length >= GROUP_MAX_WRITES && waiting.length * (writeMs ?? 0) > QUEUE_MAX_WAIT_MS)

  /** Waits as long as turns of the event loop bring more for the group, but not for long: larger ones cost less. */
  const gather = async () => {
    let before = -1
    for (let turn = 0; turn < GATHER_TURNS_MAX && before < waiting.length; turn++) {
      if (hasFullGroup()) return
      before = waiting.length
      await nextTurn()
    }
  }

  const takeGroup = (): readonly Waiting[] => {
    let count = 0
    let textLength = 0
    while (count < waiting.length && count < GROUP_MAX_WRITES && textLength < GROUP_MAX_TEXT_LENGTH) {
      textLength += waiting[count]?.textLength ?? 0
      count++
    }
    waitingTextLength -= textLength
    return waiting.splice(0, count)
  }

  const commit = async (group: readonly Waiting[]) => {
    const calls = group.map(({ call }) => call)
    versions?.begin(calls)
    committing = group
    const report = await writer.perform(calls).catch(lost)
    committing = []
    const hasFailed = typeof report === 'object' && 'failure' in report
    versions?.end({ isCommitted: !hasFailed })
    if (!hasFailed) observer?.recordGroup(group.length)
    if (!hasFailed) settle(group, report)
    else if (report.failure.kind === 'store_busy') await retry(group, report.failure)
    else rejectAll(group, report.failure)
  }

  const rejectAll = (group: readonly Waiting[], failure: Failure) => {
    const error = toError(failure)
    onFailure(error)
    // Who is told of a failure of the store says why, once for all of them.
    const { kind, outcomeIsUnknown } = failure
    const refused = kind === 'store_failed' ? new AppError(kind, { outcomeIsUnknown }) : error
    for (const { reject } of group) reject(refused)
  }

  /** A group that found a lock has done nothing. Waiting here leaves the threads to others; SQLite would block one. */
  const retry = async (group: readonly Waiting[], failure: Failure) => {
    const nowMs = monotonicMs()
    const patient = group.filter(({ deadlineMs }) => deadlineMs > nowMs)
    for (const write of group) {
      if (patient.includes(write)) continue
      observer?.recordRefusal('locked')
      write.reject(toError(failure))
    }
    if (refusal !== undefined) return rejectAll(patient, failure)
    waiting.unshift(...patient)
    for (const { textLength } of patient) waitingTextLength += textLength
    await Bun.sleep(BUSY_RETRY_MS)
  }

  return {
    /** Resolves to what the write returns, once it is durable; rejects with what refuses it, or with why it failed. */
    write: <C extends Call>(call: C): Promise<ReturnType<Writes[C[0]]>> =>
      new Promise((resolve, reject) => {
        if (refusal !== undefined) return reject(refusal)
        const textLength = textLengthOf(call)
        if (isFull(textLength)) {
          observer?.recordRefusal('queue_full')
          return reject(new AppError('store_busy'))
        }
        waitingTextLength += textLength
        waiting.push({
          call,
          textLength,
          deadlineMs: monotonicMs() + BUSY_TIMEOUT_MS,
          resolve: resolve as (value: unknown) => void,
          reject,
        })
        running ??= run()
      }),
    /** Writes that are not durable yet, those of the group that is being committed included. */
    load(): StoreLoad {
      const first = committing[0] ?? waiting[0]
      return {
        waitingWrites: committing.length + waiting.length,
        longestWaitMs: first === undefined ? 0 : monotonicMs() - (first.deadlineMs - BUSY_TIMEOUT_MS),
      }
    },
    /** From now on refuses every write, those that wait included. Resolves when the last group has been answered. */
    async refuse(error: AppError): Promise<void> {
      refusal ??= error
      for (const { reject } of waiting.splice(0)) reject(refusal)
      waitingTextLength = 0
      await running
    },
  }
}

function settle(group: readonly Waiting[], outcomes: 'done' | WriteResults): void {
  if (outcomes !== 'done') {
    for (const [index, kind, message] of outcomes.refused) group[index]?.reject(new AppError(kind, { message }))
    for (const [index, value] of outcomes.returned) group[index]?.resolve(value)
  }
  // Those that were rejected, or have resolved to what they returned, do so no more.
  for (const { resolve } of group) resolve(undefined)
}

/** The thread has gone, and nobody knows how far it came. */
const lost = (cause: unknown): { readonly failure: Failure } => ({
  failure: { kind: 'store_failed', outcomeIsUnknown: true, reason: String(cause) },
})

/** Characters of the texts behind the name. */
function textLengthOf(call: readonly unknown[]): number {
  let length = 0
  for (let index = 1; index < call.length; index++) {
    const argument = call[index]
    if (typeof argument === 'string') length += argument.length
  }
  return length
}
