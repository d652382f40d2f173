import { fileIdentity } from './files/preflight.ts'
import {
  type CheckpointReport,
  type Failure,
  openGroupWriter,
  type Report,
  type WriterOptions,
} from './group-commit.ts'
import type { Call } from './writes.ts'

/** Who performs groups of writes, one at a time, in this thread or in another. */
export interface Writer {
  /** Does a group. Rejects only if the writer is gone: then nothing is known of what became of the group. */
  perform(group: readonly Call[]): Promise<Report>
  /** Empties the WAL, unless somebody is in the way. Resolves to why that failed, if it did. */
  truncate(): Promise<Failure | undefined>
  /** Brings the WAL into the database and ends. Resolves to why that failed, if it did. */
  close(): Promise<Failure | undefined>
  /** Ends and leaves the files as they are: the next start recovers from them. */
  discard(): Promise<void>
}

/** Told what nobody waits for: of checkpoints, and of the end of a writer that nobody asked to end. */
export type OnWriterReport = (report: CheckpointReport) => void

/** A writer in this thread: whoever calls it waits for the disk. Throws what SQLite says. */
export function openWriterHere(options: WriterOptions, onReport: OnWriterReport): Writer {
  const writer = openGroupWriter(options)
  let checkpointing: ReturnType<typeof setImmediate> | undefined
  const checkpoint = () => {
    checkpointing = undefined
    const report = writer.checkpointIfDue()
    if (report !== undefined) onReport(report)
  }
  return {
    async perform(group) {
      const report = writer.perform(group)
      // In a turn of its own, so that no answer waits for it.
      checkpointing ??= setImmediate(checkpoint)
      return report
    },
    truncate: async () => writer.truncate(),
    async close() {
      clearImmediate(checkpointing)
      return writer.close()
    },
    async discard() {
      clearImmediate(checkpointing)
      writer.discard()
    },
  }
}

/** What the thread is sent: first its options. All that follows is answered, in the same order. */
export type Message =
  | WriterOptions
  | { readonly group: readonly Call[] }
  | { readonly call: 'truncate' | 'close' | 'discard' }

/** What the thread sends: an answer, or by itself what there is to tell of a checkpoint. */
export type Sent = { readonly answer: Report | Failure | undefined } | CheckpointReport

/**
 * How long the thread waits to start if no write comes first. The server listens by then and has answered those who waited for
 * it: on one core they would share the processor with the start of the thread.
 */
const START_DELAY_MS = 50

/**
 * A writer in a thread of its own. The thread starts without being asked, so that it has its descriptors before connections
 * can take them all. If its connection cannot be opened, or if the thread ends, `onReport` is told, and all that waits is
 * rejected.
 */
export function openWriterInThread(options: WriterOptions, onReport: OnWriterReport): Writer {
  let thread: Worker | undefined
  const waiting: { resolve(answer: unknown): void; reject(error: Error): void }[] = []
  let hasEnded = false

  const fail = (reason: string) => {
    if (hasEnded) return
    hasEnded = true
    for (const { reject } of waiting.splice(0)) reject(new Error(reason))
    onReport({ failure: { kind: 'store_failed', outcomeIsUnknown: false, reason } })
  }
  const start = (): Worker => {
    const started = new Worker(new URL('./writer-thread.ts', import.meta.url).href)
    started.onmessage = ({ data }: MessageEvent<Sent>) => {
      if ('answer' in data) waiting.shift()?.resolve(data.answer)
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
      waiting.push({ resolve, reject })
      thread ??= start()
      thread.postMessage(message)
    }) as Promise<T>
  const starting = setTimeout(() => {
    thread ??= start()
  }, START_DELAY_MS)
  const end = async (message: 'close' | 'discard') => {
    clearTimeout(starting)
    const failure = await ask<Failure | undefined>({ call: message })
    hasEnded = true
    thread?.terminate()
    return failure
  }

  return {
    perform: (group) => ask({ group }),
    truncate: () => ask({ call: 'truncate' }),
    async close() {
      clearTimeout(starting)
      // Nothing was written, and what was opened is not there to be closed in order.
      if (thread === undefined && fileIdentity(options.path) !== options.identity) return undefined
      // If the thread has failed, `onReport` was told why.
      return end('close').catch(() => undefined)
    },
    discard: async () => void (await end('discard').catch(() => undefined)),
  }
}
