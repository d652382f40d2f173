import { MessageChannel, type MessagePort } from 'node:worker_threads'
import type { Line, StoreShare } from '../share.ts'
import { shareCheckTime } from '../versions.ts'
import { type GroupCommitOptions, openGroupCommit } from './group-commit.ts'
import type { Sent } from './messages.ts'

/** Opens a way to the connection that writes. `onEnd` is called if its thread ends before `stop`. */
export type OpenChannel = (receive: (sent: Sent) => void, onEnd: (reason: string) => void) => Channel

interface Channel {
  readonly post: (message: string) => void
  readonly isStarted: () => boolean
  readonly stop: () => void
}

/** The connection that writes is in this thread. It throws SQLite's error if it cannot open the database. */
export const openHere =
  ({ checkedAtMs, ...options }: GroupCommitOptions & Pick<Line, 'checkedAtMs'>): OpenChannel =>
  (receive) => {
    const commit = openGroupCommit(options, (report) => receive({ report }))
    const client = { checkedAtMs, send: receive }
    return { post: (message) => commit([[client, message]]), isStarted: () => true, stop() {} }
  }

function postAndNotify(port: MessagePort, posted: Int32Array<SharedArrayBuffer>, message: string): void {
  port.postMessage(message)
  Atomics.add(posted, 0, 1)
  Atomics.notify(posted, 0)
}

const ENDED = 'the thread that writes has ended'

/** The thread that writes was started by another thread of this process. */
export const joinThread =
  ({ port, changes: { posted } }: StoreShare): OpenChannel =>
  (receive, onEnd) => {
    port.on('message', receive).on('close', () => onEnd(ENDED))
    const always = () => true
    return {
      post: (message) => postAndNotify(port, posted, message),
      isStarted: always,
      stop: () => port.close(),
    }
  }

/**
 * The thread starts after this time if no write comes first. By then the server has answered the first requests: on one core
 * they would share the processor with the start of the thread.
 */
const START_DELAY_MS = 50

/** A thread that writes. It starts before the first write, so that it has its descriptors before clients can take them all. */
export function prepareThread({ checkedAtMs, ...options }: GroupCommitOptions & Pick<Line, 'checkedAtMs'>) {
  const { port1: port, port2: ownPort } = new MessageChannel()
  let thread: Worker | undefined
  let onEnd: (reason: string) => void = () => {}
  const start = (): Worker => {
    const started = new Worker(new URL('./writer-thread.ts', import.meta.url).href)
    started.onerror = ({ message }) => onEnd(`the thread that writes has failed: ${message}`)
    started.addEventListener('close', () => onEnd(ENDED))
    started.postMessage({ options, line: { port, checkedAtMs } }, [port])
    return started
  }
  const timer = setTimeout(() => {
    thread ??= start()
  }, START_DELAY_MS)

  const open: OpenChannel = (receive, reportEnd) => {
    onEnd = reportEnd
    ownPort.on('message', receive)
    return {
      post(message): void {
        thread ??= start()
        postAndNotify(ownPort, options.changes.posted, message)
      },
      isStarted: () => thread !== undefined,
      stop(): void {
        clearTimeout(timer)
        ownPort.close()
        thread?.terminate()
      },
    }
  }
  return {
    open,
    /** A line for another thread of this process. */
    addLine(): Line {
      thread ??= start()
      const checkedAtMs = shareCheckTime()
      const { port1, port2 } = new MessageChannel()
      thread.postMessage({ line: { port: port1, checkedAtMs } }, [port1])
      return { port: port2, checkedAtMs }
    },
  }
}
