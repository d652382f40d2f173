import { AppError } from '../../../domain/error.ts'
import type { OpenOptions } from '../../engine.ts'
import { type GroupOutcome, queueGroups } from '../../group-queue.ts'
import { fileIdentity } from '../files/file-system.ts'
import { CHECKPOINTED_AT_MS, COMMIT_MS, type GroupCommitOptions, openGroupCommit } from './group-commit.ts'
import { type Answer, type Failure, type Message, type Order, type Sent, toError } from './messages.ts'
import type { Call, Writes } from './writes.ts'

/** How to open the connection that writes. */
export interface WriterOptions
  extends Omit<GroupCommitOptions, 'identity' | 'times'>,
    Required<Pick<OpenOptions, 'isServer' | 'monotonicMs' | 'onEvent'>>,
    Pick<OpenOptions, 'observer'> {
  /** Called with the error of each group and each checkpoint that fails, and once if the thread ends before it was closed. */
  readonly onFailure: (error: unknown) => void
}

/**
 * Opens the connection that writes, and the queue through which all writes of a SQLite file pass. A transaction takes writes of
 * all kinds, in their order. Without a thread it throws SQLite's error if it cannot open the database.
 */
export function openWriter({ isServer, monotonicMs, onFailure, onEvent, observer, ...options }: WriterOptions) {
  const times = new Float64Array(new SharedArrayBuffer(2 * Float64Array.BYTES_PER_ELEMENT))
  times[CHECKPOINTED_AT_MS] = Date.now()
  const identity = fileIdentity(options.path)
  const connection = openConnection(isServer, { ...options, identity, times }, { onFailure, onEvent })

  const perform = async (calls: readonly string[]): Promise<GroupOutcome> => {
    const answer = await connection.ask(`{"nowMs":${monotonicMs()},"group":[${calls.join()}]}`)
    if (answer === 'done' || !('failure' in answer)) {
      observer?.recordGroup(calls.length, times[COMMIT_MS] ?? 0)
      return answer
    }
    const { kind, outcomeIsUnknown } = answer.failure
    if (kind === 'store_busy') return 'locked'
    const error = toError(answer.failure)
    onFailure(error)
    // `onFailure` gets the cause of a failed store once. The errors of the writes do not repeat the cause.
    throw kind === 'store_failed' ? new AppError(kind, { outcomeIsUnknown }) : error
  }
  const { write, ...queue } = queueGroups({ perform: { all: perform }, observer })

  return {
    ...queue,
    /** Asks for a write. Rejects with an `AppError` if SQLite fails. */
    write<C extends Call>(call: C) {
      const content = JSON.stringify(call)
      return write({ lane: 'all', content, textLength: content.length }) as Promise<ReturnType<Writes[C[0]]>>
    },
    /** Asks for a look for commits of other processes, and does not wait. Before a thread has started, the caches stay unused. */
    checkOthers(nowMs: number): void {
      if (connection.isStarted()) connection.post(JSON.stringify({ checkOthersAtMs: nowMs } satisfies Message))
    },
    checkpointedAtMs: () => times[CHECKPOINTED_AT_MS] ?? 0,
    /** Brings the WAL into the database and empties it, unless another process reads it. */
    emptyWal: () => connection.obey('truncate'),
    /** Brings the WAL into the database and ends. */
    async close(): Promise<void> {
      // If nothing was written, the file may be gone.
      if (connection.isStarted() || fileIdentity(options.path) === identity) await connection.end('close')
      else connection.stop()
    },
    /** Ends and leaves the files as they are: the next start recovers from them. */
    discard: () => connection.end('discard'),
  }
}

/** The connection that writes, in a thread or here, and the answers that it owes. */
function openConnection(
  isServer: boolean,
  options: GroupCommitOptions,
  { onFailure, onEvent }: Pick<WriterOptions, 'onFailure' | 'onEvent'>,
) {
  const unanswered: ((answer: Answer) => void)[] = []
  /** Why nothing answers any more. */
  let ending: Failure | undefined

  const receive = (sent: Sent) => {
    if (sent === 'done' || !('report' in sent)) unanswered.shift()?.(sent)
    else if ('event' in sent.report) onEvent(sent.report.event)
    else onFailure(toError(sent.report.failure))
  }
  const onEnd = (reason: string) => {
    if (ending !== undefined) return
    // Nobody knows how far the thread came.
    ending = { kind: 'store_failed', outcomeIsUnknown: true, reason }
    for (const resolve of unanswered.splice(0)) resolve({ failure: ending })
    onFailure(new AppError('store_failed', { cause: reason }))
  }
  const channel = isServer
    ? prepareThread(options, receive, onEnd)
    : { post: openGroupCommit(options, receive), isStarted: () => true, stop() {} }

  const ask = (message: string): Promise<Answer> =>
    new Promise((resolve) => {
      if (ending !== undefined) return resolve({ failure: ending })
      unanswered.push(resolve)
      channel.post(message)
    })
  const obey = async (order: Order): Promise<void> => {
    const answer = await ask(JSON.stringify({ order } satisfies Message))
    if (answer !== 'done' && 'failure' in answer) throw toError(answer.failure)
  }
  const end = async (order: Order): Promise<void> => {
    try {
      await obey(order)
    } catch (error) {
      // A thread that has ended has reported it already.
      if (ending === undefined) throw error
    } finally {
      ending ??= { kind: 'store_busy', outcomeIsUnknown: false, reason: 'the store is closed' }
      channel.stop()
    }
  }
  return { ...channel, ask, obey, end }
}

/**
 * The thread starts after this time if no write comes first. By then the server has answered the first requests: on one core
 * they would share the processor with the start of the thread.
 */
const START_DELAY_MS = 50

/** The thread starts before the first write, so that it has its descriptors before clients can take them all. */
function prepareThread(options: GroupCommitOptions, receive: (sent: Sent) => void, onEnd: (reason: string) => void) {
  let thread: Worker | undefined
  const start = (): Worker => {
    const started = new Worker(new URL('./writer-thread.ts', import.meta.url).href)
    started.onmessage = ({ data }: MessageEvent<Sent>) => receive(data)
    started.onerror = ({ message }) => onEnd(`the thread that writes has failed: ${message}`)
    started.addEventListener('close', () => onEnd('the thread that writes has ended'))
    started.postMessage(options)
    return started
  }
  const timer = setTimeout(() => {
    thread ??= start()
  }, START_DELAY_MS)
  return {
    post(message: string): void {
      thread ??= start()
      thread.postMessage(message)
    },
    isStarted: () => thread !== undefined,
    stop(): void {
      clearTimeout(timer)
      thread?.terminate()
    },
  }
}
