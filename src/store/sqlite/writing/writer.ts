import { fileIdentity } from '../files/file-system.ts'
import { openGroupWriter, type WriterOptions } from './group-commit.ts'
import type { Call, CheckpointReport, Failure, GroupResult } from './writes.ts'

/** Commits groups of writes, one group at a time, in this thread or in another one. */
export interface Writer {
  /** Commits a group. Rejects only if the writer is gone: then the outcome of the group is unknown. */
  perform(group: readonly Call[], nowMs: number): Promise<GroupResult>
  /** Asks for a look for commits of other processes, and does not wait for it. */
  checkOthers(nowMs: number): void
  /** Empties the WAL, unless another process reads it. Resolves to the failure, if there was one. */
  truncate(): Promise<Failure | undefined>
  /** Brings the WAL into the database and ends. Resolves to the failure, if there was one. */
  close(): Promise<Failure | undefined>
  /** Ends and leaves the files as they are: the next start recovers from them. */
  discard(): Promise<void>
}

/** Called with reports of checkpoints, and with a failure if the writer ends before it was closed. */
type OnWriterReport = (report: CheckpointReport) => void

/** A writer in this thread: the caller of `perform` waits for the disk. Throws SQLite's error if it cannot open the database. */
export function openWriterHere(options: WriterOptions, onReport: OnWriterReport): Writer {
  const writer = openGroupWriter(options)
  return {
    async perform(group, nowMs) {
      const result = writer.perform(group, nowMs)
      const report = writer.checkpointIfDue(group)
      if (report !== undefined) onReport(report)
      return result
    },
    checkOthers: writer.checkOthers,
    truncate: async () => writer.truncate(),
    close: async () => writer.close(),
    discard: async () => writer.discard(),
  }
}

/** A message to the thread. The first one is its options. It answers groups and calls, in the same order. */
export type Message =
  | WriterOptions
  | { readonly group: readonly Call[]; readonly nowMs: number }
  | { readonly checkOthersAtMs: number }
  | { readonly call: 'truncate' | 'close' | 'discard' }

/** A message from the thread: an answer, or a report of a checkpoint. */
export type Sent = { readonly answer: GroupResult | Failure | undefined } | CheckpointReport

/**
 * The thread starts after this time if no write comes first. By then the server has answered the first requests: on one core
 * they would share the processor with the start of the thread.
 */
const START_DELAY_MS = 50

/**
 * A writer in a thread of its own. The thread starts before the first write, so that it has its descriptors before clients
 * can take them all. If the thread cannot open the database, or ends, it reports a failure and rejects all that waits.
 */
export function openWriterInThread(options: WriterOptions, onReport: OnWriterReport): Writer {
  let thread: Worker | undefined
  const unanswered: { resolve(answer: unknown): void; reject(error: Error): void }[] = []
  let hasEnded = false

  const fail = (reason: string) => {
    if (hasEnded) return
    hasEnded = true
    for (const { reject } of unanswered.splice(0)) reject(new Error(reason))
    onReport({ failure: { kind: 'store_failed', outcomeIsUnknown: false, reason } })
  }
  const start = (): Worker => {
    const started = new Worker(new URL('./writer-thread.ts', import.meta.url).href)
    started.onmessage = ({ data }: MessageEvent<Sent>) => {
      if ('answer' in data) unanswered.shift()?.resolve(data.answer)
      else onReport(data)
    }
    started.onerror = ({ message }) => fail(`the thread that writes has failed: ${message}`)
    started.addEventListener('close', () => fail('the thread that writes has ended'))
    started.postMessage(options satisfies Message)
    return started
  }
  /** `T` is what the thread answers to this message. */
  const ask = <T>(message: Message): Promise<T> => {
    if (hasEnded) return Promise.reject(new Error('the thread that writes has ended'))
    const { promise, ...answered } = Promise.withResolvers<unknown>()
    unanswered.push(answered)
    thread ??= start()
    thread.postMessage(message)
    return promise as Promise<T>
  }
  const startTimer = setTimeout(() => {
    thread ??= start()
  }, START_DELAY_MS)
  const end = async (message: 'close' | 'discard') => {
    clearTimeout(startTimer)
    const failure = await ask<Failure | undefined>({ call: message })
    hasEnded = true
    thread?.terminate()
    return failure
  }

  return {
    perform: (group, nowMs) => ask({ group, nowMs }),
    // Before the thread has started, the caches stay unused.
    checkOthers: (nowMs) => thread?.postMessage({ checkOthersAtMs: nowMs } satisfies Message),
    truncate: () => ask({ call: 'truncate' }),
    async close() {
      clearTimeout(startTimer)
      // Nothing was written, and the file is not there any more.
      if (thread === undefined && fileIdentity(options.path) !== options.identity) return undefined
      // A thread that has failed has reported it already.
      return end('close').catch(() => undefined)
    },
    discard: async () => void (await end('discard').catch(() => undefined)),
  }
}
