import type { Random } from '../support/random.ts'
import type { Entry, History } from './history.ts'
import { requestIdOf } from './history.ts'

/** As many as the issue of faults is about: enough that groups of writes form. */
export const CONNECTIONS = 64

interface LoadOptions {
  /** Of the server, like `http://127.0.0.1:8080`. */
  readonly url: string
  readonly token: string
  readonly history: History
  readonly random: Random
  readonly connections?: number
  /** How many of a hundred writes are deletes, where there is something to delete. */
  readonly deletesPercent?: number
  /** How long a connection waits after it was refused, as clients do who heed `Retry-After`; not at all if left out. */
  readonly pauseMs?: number
  /** Told of each answer once it is here whole. */
  readonly onAnswer?: (answer: Answered) => void
}

/** An answer to a write of a load. */
export interface Answered {
  readonly status: number
  readonly headers: Headers
  readonly body: string
}

/** A load under way. */
export interface Load {
  /** Sends nothing more, and resolves when all that was sent has been answered or cut off. */
  stop(): Promise<void>
  /** Resolves after so many answers of success. Rejects if the last connection has ended before. */
  acknowledged(count: number): Promise<void>
  /** Answers so far, by status. */
  statuses(): ReadonlyMap<number, number>
}

/**
 * Creates and deletes plants over many connections at once, each with its next write when the last was answered, and
 * keeps the history. A connection that is cut, or refused, ends: what it had sent stays cut off.
 */
export function startLoad(options: LoadOptions): Load {
  const { history, random, connections = CONNECTIONS, deletesPercent = 30, pauseMs } = options
  const statuses = new Map<number, number>()
  let isStopped = false
  let successes = 0
  let running = connections

  const next = (): Entry => (random(100) < deletesPercent ? history.delete(random) : undefined) ?? history.create()
  const work = async () => {
    while (!isStopped) {
      const entry = next()
      let status: number
      try {
        const response = await send(options, entry)
        status = response.status
        // What says success has said it, also where the rest of it is cut off.
        if (response.ok) {
          history.record(entry, status, '')
          successes++
        }
        const body = await response.text()
        if (!response.ok) history.record(entry, status, body)
        options.onAnswer?.({ status, headers: response.headers, body })
      } catch {
        // Cut off, and the history says so of it, unless an answer of success had begun.
        return
      }
      statuses.set(status, (statuses.get(status) ?? 0) + 1)
      if (pauseMs !== undefined && status >= 500) await Bun.sleep(pauseMs)
    }
  }
  const workers = Array.from({ length: connections }, () => work().finally(() => running--))

  return {
    async stop() {
      isStopped = true
      await Promise.all(workers)
    },
    async acknowledged(count) {
      while (successes < count) {
        if (running === 0) throw new Error(`all connections ended after ${successes} answers of success`)
        await Bun.sleep(1)
      }
    },
    statuses: () => statuses,
  }
}

function send({ url, token, history }: LoadOptions, entry: Entry): Promise<Response> {
  const headers = { authorization: `Bearer ${token}`, 'x-request-id': requestIdOf(entry) }
  if (entry.kind === 'delete') return fetch(`${url}/plants/${entry.id}`, { method: 'DELETE', headers })
  return fetch(`${url}/plants`, {
    method: 'POST',
    headers: { ...headers, 'content-type': 'application/json' },
    body: JSON.stringify(history.plantOf(entry.id)),
  })
}
