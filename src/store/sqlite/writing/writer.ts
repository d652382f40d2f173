import { AppError } from '../../../domain/error.ts'
import type { OpenOptions } from '../../engine.ts'
import { type GroupOutcome, queueGroups } from '../../group-queue.ts'
import type { OpenChannel } from './channels.ts'
import { type Answer, type Failure, type Message, type Order, type Sent, toError, toFailure } from './messages.ts'
import type { Call, Writes } from './writes.ts'

/** How a thread uses the connection that writes. */
export interface WriterOptions
  extends Required<Pick<OpenOptions, 'monotonicMs' | 'onEvent'>>,
    Pick<OpenOptions, 'observer' | 'threads'> {
  readonly open: OpenChannel
  /** Called with the error of each group and each checkpoint that fails, and once if the thread ends before it was closed. */
  readonly onFailure: (error: unknown) => void
}

/** The queue through which all writes of a thread pass. A transaction takes writes of all kinds, in their order. */
export function openWriter({ open, monotonicMs, onFailure, onEvent, observer, threads }: WriterOptions) {
  const connection = openConnection(open, { onFailure, onEvent })

  const perform = async (calls: readonly string[]): Promise<GroupOutcome> => {
    const answer = await connection.ask(`{"nowMs":${monotonicMs()},"group":[${calls.join()}]}`)
    if (answer === 'done') return answer
    if (!('failure' in answer)) {
      if (answer.writes > 0) observer?.recordGroup(answer.writes, answer.commitMs)
      return answer.results ?? 'done'
    }
    const { kind, outcomeIsUnknown } = answer.failure
    if (kind === 'store_busy') return 'locked'
    const error = toError(answer.failure)
    onFailure(error)
    // `onFailure` gets the cause of a failed store once. The errors of the writes do not repeat the cause.
    throw kind === 'store_failed' ? new AppError(kind, { outcomeIsUnknown }) : error
  }
  const { write, ...queue } = queueGroups({ perform: { only: perform }, observer, threads })
  /** Sends a message that has no answer, and waits for no thread to start. */
  const tell = (message: Message) => {
    if (connection.isStarted()) connection.post(JSON.stringify(message))
  }

  return {
    ...queue,
    /** Asks for a write. Rejects with an `AppError` if SQLite fails. */
    write<C extends Call>(call: C) {
      const content = JSON.stringify(call)
      return write({ lane: 'only', content, textLength: content.length }) as Promise<ReturnType<Writes[C[0]]>>
    },
    /** Asks for a look for commits of other processes, and does not wait. Before a thread has started, the caches stay unused. */
    checkOthers: (nowMs: number) => tell({ checkOthersAtMs: nowMs }),
    /** Ends all writing, also that of other threads of this process. */
    async fail(error: AppError): Promise<void> {
      tell({ failure: toFailure(error) })
      await queue.refuse(new AppError('store_failed'))
    },
    /** Brings the WAL into the database and empties it, unless another process reads it. */
    emptyWal: () => connection.obey('truncate'),
    isStarted: connection.isStarted,
    /** Sends the last order if there is one, and ends the connection. */
    end: connection.end,
  }
}

/** The connection that writes, and the answers that it owes. */
function openConnection(open: OpenChannel, { onFailure, onEvent }: Pick<WriterOptions, 'onFailure' | 'onEvent'>) {
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
  const channel = open(receive, onEnd)

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
  const end = async (order: Order | undefined): Promise<void> => {
    try {
      if (order !== undefined) await obey(order)
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
