import { type Entry, type History, plantOf, requestIdOf } from './history.ts'
import { formatRequest, openConnection, readReply } from './raw-connection.ts'

const NEWCOMERS = 16

/** A create as it is on the wire, with its name in the log as its `X-Request-Id`. */
const createOf = (token: string, entry: Entry): string =>
  formatRequest('POST', '/plants', token, plantOf(entry.id), `X-Request-Id: ${requestIdOf(entry)}\r\n`)

/** Whether an answer says that it is the last of its connection. */
const isLast = (head: string): boolean => /^connection: close$/im.test(head)

/** An answer to a newcomer. */
export interface NewcomerAnswer {
  /** When the create was sent, by `performance.now()`. */
  readonly sentMs: number
  /** Whether it said that the connection ends. */
  readonly isLast: boolean
}

/** Creates over a connection of its own for each, again and again, until one is cut or refused. */
export function startNewcomers(port: number, token: string, history: History) {
  const answers: NewcomerAnswer[] = []
  let isStopped = false
  const work = async () => {
    while (!isStopped) {
      const entry = history.create()
      const sentMs = performance.now()
      try {
        using wire = await openConnection(port)
        const { status, head, body } = await wire.ask(createOf(token, entry))
        history.record(entry, status, body)
        answers.push({ sentMs, isLast: isLast(head) })
      } catch {
        return
      }
    }
  }
  const workers = Array.from({ length: NEWCOMERS }, work)
  return {
    /** Those that came whole. */
    answers,
    async stop() {
      isStopped = true
      await Promise.all(workers)
    },
  }
}

/** Sends a create but for its end: up to the middle of its head, or of its body. */
export async function sendHalf(port: number, token: string, history: History, part: 'head' | 'body') {
  const entry = history.create()
  const request = createOf(token, entry)
  const cutAt = part === 'head' ? request.indexOf('Content-Type') + 4 : request.length - 10
  const wire = await openConnection(port)
  wire.write(request.slice(0, cutAt))
  return {
    entry,
    /** Sends the rest. Resolves to the status of the answer, if one comes. */
    async complete(): Promise<number | undefined> {
      const reply = await wire.ask(request.slice(cutAt)).catch(() => undefined)
      if (reply !== undefined) history.record(entry, reply.status, reply.body)
      return reply?.status
    },
    [Symbol.dispose]: wire.cut,
  }
}

/** How a list ends, with a `Content-Length` or in chunks. */
const LIST_END = /\](?:\r\n0\r\n\r\n)?$/

/** Begins to read a list, the whole one without a query, at a steady pace. Resolves when the answer has begun. */
export async function readSlowly(port: number, token: string, bytesPerSecond: number, query = '') {
  const chunks: Buffer[] = []
  const begun = Promise.withResolvers<void>()
  const over = Promise.withResolvers<void>()
  const startMs = performance.now()
  let bytes = 0
  const reply = () => readReply(Buffer.concat(chunks).toString('latin1'))
  await Bun.connect({
    hostname: '127.0.0.1',
    port,
    socket: {
      open: (socket) => void socket.write(formatRequest('GET', `/plants${query}`, token)),
      data(socket, chunk) {
        begun.resolve()
        chunks.push(Buffer.from(chunk))
        bytes += chunk.length
        if (LIST_END.test(chunk.toString('latin1')) && reply() !== undefined) over.resolve()
        socket.pause()
        const waitMs = (bytes / bytesPerSecond) * 1000 - (performance.now() - startMs)
        setTimeout(() => socket.resume(), Math.max(0, waitMs))
      },
      close: () => over.resolve(),
      error() {},
    },
  })
  await begun.promise
  return {
    /** How much has come so far. */
    bytes: () => bytes,
    /** How many plants the answer holds when it is whole; `undefined` if its connection ends before. */
    async plants(): Promise<number | undefined> {
      await over.promise
      const whole = reply()
      return whole && JSON.parse(whole.body).length
    },
  }
}
