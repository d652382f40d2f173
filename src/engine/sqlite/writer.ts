// Tested in test/engine/sqlite/thread.test.ts.
import { MessageChannel, type MessagePort } from 'node:worker_threads'
import { AppError } from '../../error.ts'
import { type GroupOutcome, type QueueDeadlines, queueGroups } from '../group-queue.ts'
import type { EngineEvent, EngineObserver } from '../observer.ts'
import { type GroupCommitOptions, openGroupCommit } from './group-commit.ts'
import {
  type Failure,
  type FromWriter,
  type ToWriter,
  toError,
  toFailure,
  type WriterAnswer,
  type WriterCommand,
} from './messages.ts'
import type { Call, Program, Writes } from './program.ts'
import { type Changes, type CheckTime, shareCheckTime } from './versions.ts'

/** What another thread of this process needs to use the same store. A message can have it, with the port in its transfer list. */
export type StoreShare = WriterLink & Pick<GroupCommitOptions, 'path' | 'identity' | 'changes'>

/** What a thread shares with the thread that writes, and with no other: the port for messages, and the time of its checks. */
export interface WriterLink {
  readonly port: MessagePort
  readonly checkedAtMs: CheckTime
}

/** What a thread that uses a store needs of its process. */
export interface ThreadOptions {
  /** How many threads of this process use the store, and share the limits of the queue of writes: 1 if left out. */
  readonly threads?: number | undefined
  /** Called for each group of writes, for the metrics. */
  readonly observer?: EngineObserver | undefined
  readonly monotonicMs: () => number
  /** Within this time the thread sees what another process has changed in the same file. */
  readonly othersSeenWithinMs: number
  /** How long a write may wait; as the queue says if left out. */
  readonly deadlines?: QueueDeadlines | undefined
}

export interface WriterOptions extends ThreadOptions {
  readonly open: OpenChannel
  readonly onEvent: (event: EngineEvent) => void
  /** Called with the error of each group and each checkpoint that fails, and once if the thread ends before it was closed. */
  readonly onFailure: (error: unknown) => void
}

/** The queue through which all writes of a thread pass. A transaction takes writes of all kinds, in their order. */
export function createWriteQueue<All extends Writes>(options: WriterOptions) {
  const { open, monotonicMs, onFailure, onEvent, observer, threads, deadlines } = options
  const connection = openConnection(open, { onFailure, onEvent })

  const perform = async (calls: readonly string[]): Promise<GroupOutcome> => {
    const answer = await connection.ask(`{"nowMs":${monotonicMs()},"group":[${calls.join()}]}`)
    if (answer === 'done') return answer
    if (!('failure' in answer)) {
      if (answer.commit !== undefined) observer?.recordGroup(answer.commit.writes, answer.commit.durationMs)
      return answer.results ?? 'done'
    }
    const { kind, outcomeIsUnknown } = answer.failure
    if (kind === 'store_busy') return 'locked'
    const error = toError(answer.failure)
    onFailure(error)
    // `onFailure` gets the cause of a failed store once. The errors of the writes do not repeat the cause.
    throw kind === 'store_failed' ? new AppError(kind, { outcomeIsUnknown }) : error
  }
  const { write, ...queue } = queueGroups({ perform: { only: perform }, observer, threads, deadlines })
  /** Sends a message that has no answer. */
  const post = (message: ToWriter) => connection.post(JSON.stringify(message))

  return {
    ...queue,
    /** Asks for a write. Rejects with an `AppError` if SQLite fails. */
    write<Name extends keyof All & string>(call: readonly [Name, ...Parameters<All[Name]>]) {
      const content = JSON.stringify(call satisfies Call)
      return write({ lane: 'only', content, textLength: content.length }) as Promise<ReturnType<All[Name]>>
    },
    /** Asks for a look for commits of other processes, and does not wait. */
    checkOthers: (nowMs: number) => post({ checkOthersAtMs: nowMs }),
    /** Ends all writing, also that of other threads of this process. */
    async fail(error: AppError): Promise<void> {
      post({ failure: toFailure(error) })
      await queue.refuse(new AppError('store_failed'))
    },
    /** Brings the WAL into the database and empties it, unless another process reads it. */
    emptyWal: () => connection.execute('truncate'),
    /** Resolves once the connection is open, or has failed. */
    opened: connection.opened,
    /** Sends the last command if there is one, and ends the connection. */
    end: connection.end,
  }
}

/** The connection that writes, and the answers that it owes. */
function openConnection(open: OpenChannel, { onFailure, onEvent }: Pick<WriterOptions, 'onFailure' | 'onEvent'>) {
  const unanswered: ((answer: WriterAnswer) => void)[] = []
  /** Why nothing answers any more. */
  let ending: Failure | undefined

  const receive = (sent: FromWriter) => {
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
  // The first answer comes unasked.
  const opened = new Promise<WriterAnswer>((resolve) => unanswered.push(resolve))
  const channel = open(receive, onEnd)

  const ask = (message: string): Promise<WriterAnswer> =>
    new Promise((resolve) => {
      if (ending !== undefined) return resolve({ failure: ending })
      unanswered.push(resolve)
      channel.post(message)
    })
  const execute = async (command: WriterCommand): Promise<void> => {
    const answer = await ask(JSON.stringify({ command } satisfies ToWriter))
    if (answer !== 'done' && 'failure' in answer) throw toError(answer.failure)
  }
  const end = async (command: WriterCommand | undefined): Promise<void> => {
    try {
      if (command !== undefined) await execute(command)
    } catch (error) {
      // A thread that has ended has reported it already.
      if (ending === undefined) throw error
    } finally {
      ending ??= { kind: 'store_busy', outcomeIsUnknown: false, reason: 'the store is closed' }
      channel.stop()
    }
  }
  return { ...channel, opened, ask, execute, end }
}

/** Opens a way to the connection that writes. It answers `done` once it is open. `onEnd`: its thread has ended too early. */
export type OpenChannel = (receive: (sent: FromWriter) => void, onEnd: (reason: string) => void) => Channel

interface Channel {
  readonly post: (message: string) => void
  readonly stop: () => void
}

/** The connection that writes is in this thread. It throws SQLite's error if it cannot open the database. */
export const openHere =
  (program: Program, { checkedAtMs, ...options }: GroupCommitOptions & Pick<WriterLink, 'checkedAtMs'>): OpenChannel =>
  (receive) => {
    const commit = openGroupCommit(program, options, (report) => receive({ report }))
    const client = { checkedAtMs, port: { postMessage: receive } }
    receive('done')
    return { post: (message) => commit([[client, JSON.parse(message)]]), stop() {} }
  }

const ENDED = 'the thread that writes has ended'

/** Sends a message to the thread that writes, which may be waiting for one. */
function postTo(port: MessagePort, { posted }: Changes, message: string): void {
  port.postMessage(message)
  Atomics.add(posted, 0, 1)
  Atomics.notify(posted, 0)
}

/** The thread that writes was started by another thread of this process. */
export const joinThread =
  ({ port, changes }: StoreShare): OpenChannel =>
  (receive, onEnd) => {
    port.on('message', receive).on('close', () => onEnd(ENDED))
    return { post: (message) => postTo(port, changes, message), stop: () => port.close() }
  }

/** A thread that has been started writes: it runs `runProgram`. */
export function useThread(
  thread: Worker,
  { checkedAtMs, ...options }: GroupCommitOptions & Pick<WriterLink, 'checkedAtMs'>,
) {
  const { port1: port, port2: ownPort } = new MessageChannel()
  thread.postMessage({ options, link: { port, checkedAtMs } }, [port])

  const open: OpenChannel = (receive, onEnd) => {
    thread.onerror = ({ message }) => onEnd(`the thread that writes has failed: ${message}`)
    thread.addEventListener('close', () => onEnd(ENDED))
    ownPort.on('message', receive)
    return {
      post: (message) => postTo(ownPort, options.changes, message),
      stop(): void {
        ownPort.close()
        thread.terminate()
      },
    }
  }
  return {
    open,
    addLink(): WriterLink {
      const checkedAtMs = shareCheckTime()
      const { port1, port2 } = new MessageChannel()
      thread.postMessage({ link: { port: port1, checkedAtMs } }, [port1])
      return { port: port2, checkedAtMs }
    },
  }
}
