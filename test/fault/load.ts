import type { Random } from '../support/random.ts'
import { until } from '../support/until.ts'
import { type Answer, contentOf, type History, requestIdOf, type Write } from './history.ts'

/** Enough that writes share group commits. */
export const CONNECTIONS = 64

/** A server, one of its clients, and the history of that client's writes. */
interface Client {
  /** Like `http://127.0.0.1:8080`. */
  readonly url: string
  readonly token: string
  readonly history: History
}

/** What of a load differs from the default. */
export interface LoadOptions {
  readonly connections?: number
  /** How many of a hundred writes delete or replace a plant, if there are plants. */
  readonly changesPercent?: number
  /** How long a connection waits after a 503, like a client that heeds `Retry-After`; by default not at all. */
  readonly pauseMs?: number
  /** How long a connection waits after each answer, like a person who thinks; by default not at all. */
  readonly thinkMs?: number
  /** Is called with each answer once it is whole. */
  readonly onAnswer?: (answer: Answer, write: Write) => void
}

/**
 * Creates, puts and deletes plants over many connections at once and records all of it in the history. Each connection sends its
 * next write after the last answer, and ends when it is cut or refused.
 */
export function startLoad(options: Client & LoadOptions & { readonly random: Random }) {
  const { history, random, connections = CONNECTIONS, changesPercent = 40, pauseMs, thinkMs = 0, onAnswer } = options
  let isStopped = false
  let successes = 0
  let answers = 0
  let running = connections

  const change = () => (random(2) === 0 ? history.delete(random) : history.replace(random))
  const make = () => (random(2) === 0 ? history.create() : history.make())
  const nextWrite = () => (random(100) < changesPercent ? change() : undefined) ?? make()
  const work = async () => {
    while (!isStopped) {
      const write = nextWrite()
      const answer = await sendWrite(options, write).catch(() => undefined)
      if (write.outcome === 'acknowledged') successes++
      if (answer === undefined) return
      answers++
      onAnswer?.(answer, write)
      if (pauseMs !== undefined && answer.status >= 500) await Bun.sleep(pauseMs)
      if (thinkMs > 0) await Bun.sleep(thinkMs)
    }
  }
  const workers = Array.from({ length: connections }, () => work().finally(() => running--))

  return {
    /** Sends nothing more. Resolves when all that was sent has been answered or cut off. */
    async stop() {
      isStopped = true
      await Promise.all(workers)
    },
    /** Resolves after a number of successes. Rejects if the last connection has ended before. */
    async acknowledged(count: number): Promise<void> {
      await until(`${count} writes succeeded`, (see) => {
        if (running === 0) throw new Error(`all connections ended after ${successes} answers of success`)
        return see(successes) >= count
      })
    },
    /** How many whole answers have come. */
    answers: () => answers,
    /** How many connections have been cut or refused. */
    ended: () => connections - running,
  }
}

/** The method and the path of a write, and the plant that it sends. */
export function requestOf(write: Write, { plantOf }: History) {
  const { kind, id } = write
  if (kind === 'delete') return { method: 'DELETE', path: `/plants/${id}` }
  const plant = contentOf(write, plantOf(id))
  return kind === 'create'
    ? { method: 'POST', path: '/plants', plant }
    : { method: 'PUT', path: `/plants/${id}`, plant }
}

/** Sends a write of the history, records the answer, and resolves to it. Rejects if the connection ends before. */
export async function sendWrite({ url, token, history }: Client, write: Write): Promise<Answer> {
  const { method, path, plant } = requestOf(write, history)
  const headers = { authorization: `Bearer ${token}`, 'x-request-id': requestIdOf(write) }
  const response = await fetch(url + path, {
    method,
    ...(plant === undefined
      ? { headers }
      : { headers: { ...headers, 'content-type': 'application/json' }, body: JSON.stringify(plant) }),
  })
  // A success is one as soon as its head has come, also if the rest is cut off.
  if (response.ok) history.record(write, { status: response.status, headers: response.headers, body: '' })
  const answer = { status: response.status, headers: response.headers, body: await response.text() }
  if (!response.ok) history.record(write, answer)
  return answer
}
