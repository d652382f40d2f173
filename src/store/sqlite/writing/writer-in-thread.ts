import { fileIdentity } from '../files/file-identity.ts'
import type { WriterOptions } from './group-commit.ts'
import type { CheckpointReport, Failure, GroupResult } from './group-result.ts'
import type { OnWriterReport, Writer } from './writer.ts'
import type { Call } from './writes.ts'

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
  const ask = <T>(message: Message): Promise<T> =>
    new Promise<unknown>((resolve, reject) => {
      if (hasEnded) return reject(new Error('the thread that writes has ended'))
      unanswered.push({ resolve, reject })
      thread ??= start()
      thread.postMessage(message)
    }) as Promise<T>
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
