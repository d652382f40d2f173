import { AppError } from '../../../domain/error.ts'
import type { StoreLoad } from '../../../domain/statistics.ts'
import { linger } from '../../linger.ts'
import type { GroupResult } from './group-result.ts'
import { type GroupEvents, rejectAll, settleGroup } from './settle-group.ts'
import { type WaitingWrite, waitingWrites } from './waiting-writes.ts'
import type { Writer } from './writer.ts'
import type { Call, Writes } from './writes.ts'

/** How long the queue waits before it tries a locked database again. */
const BUSY_RETRY_MS = 5

interface QueueOptions extends GroupEvents {
  readonly writer: Pick<Writer, 'perform'>
  readonly monotonicMs?: () => number
}

/**
 * Commits writes in groups. All writes pass through this queue. When the writer is free, one transaction takes all writes that
 * wait, up to a full group. They share its sync, and each write gets its own result after it.
 */
export function queueWrites(options: QueueOptions) {
  const { writer, onRefusal, monotonicMs = () => performance.now() } = options
  const waiting = waitingWrites()
  let committing: readonly WaitingWrite[] = []
  let running: Promise<void> | undefined
  let refusal: AppError | undefined

  const run = async () => {
    while (waiting.count() > 0) {
      const startMs = monotonicMs()
      await linger(waiting.count, waiting.hasFullGroup)
      const group = waiting.takeGroup()
      if (group.length > 0) await commit(group)
      waiting.recordDuration(group.length, monotonicMs() - startMs)
    }
    running = undefined
  }

  const commit = async (group: readonly WaitingWrite[]) => {
    const calls = group.map(({ call }) => call)
    committing = group
    const result = await writer.perform(calls, monotonicMs()).catch(writerGone)
    committing = []
    const locked = settleGroup(group, result, options, monotonicMs())
    if (locked.length === 0) return
    if (refusal !== undefined) return rejectAll(locked, refusal)
    waiting.putBack(locked)
    // The queue waits here, because SQLite would block the thread.
    await Bun.sleep(BUSY_RETRY_MS)
  }

  return {
    /** Resolves to the result of the write once it is durable. Rejects with the refusal of the write, or with its failure. */
    write: <C extends Call>(call: C): Promise<ReturnType<Writes[C[0]]>> =>
      new Promise((resolve, reject) => {
        if (refusal !== undefined) return reject(refusal)
        const textLength = textLengthOf(call)
        if (!waiting.hasRoom(textLength)) {
          onRefusal?.('queue_full')
          return reject(new AppError('store_busy'))
        }
        waiting.add({ call, textLength, askedAtMs: monotonicMs(), resolve: resolve as WaitingWrite['resolve'], reject })
        running ??= run()
      }),
    /** The writes that are not durable yet, those of the current group included. */
    load(): StoreLoad {
      const nowMs = monotonicMs()
      const { askedAtMs } = committing[0] ?? waiting.first() ?? { askedAtMs: nowMs }
      return { waitingWrites: committing.length + waiting.count(), longestWaitMs: nowMs - askedAtMs }
    },
    /** Refuses all writes from now on, waiting ones included. Resolves when the current group has its results. */
    async refuse(error: AppError): Promise<void> {
      refusal ??= error
      rejectAll(waiting.takeAll(), refusal)
      await running
    },
  }
}

/** The thread has ended, and nobody knows how far it came. */
const writerGone = (cause: unknown): GroupResult => ({
  failure: { kind: 'store_failed', outcomeIsUnknown: true, reason: String(cause) },
})

/** The length of all texts of a call behind its name. */
function textLengthOf(call: readonly unknown[]): number {
  let length = 0
  for (let index = 1; index < call.length; index++) {
    const argument = call[index]
    if (typeof argument === 'string') length += argument.length
  }
  return length
}
