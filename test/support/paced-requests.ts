import { percentile } from '../bench/statistics.ts'
import type { Connection } from './raw-connection.ts'
import { until } from './until.ts'

type Answer = Awaited<ReturnType<Connection['request']>>

/** A request, and the function that is called with its answer. */
export interface PacedRequest {
  readonly request: string
  readonly onAnswer?: (answer: Answer) => void
}

interface PacedRequestsOptions {
  readonly connections: readonly Connection[]
  readonly seconds: number
  readonly next: () => PacedRequest
  /** How many requests are due per second; without it each request follows an answer. One without a free connection is never sent. */
  readonly perSecond?: number
}

/** Sends requests over connections with one request under way on each. */
export async function sendRequests({ connections, seconds, next, perSecond }: PacedRequestsOptions) {
  const latenciesMs = new Map<number, number[]>()
  const free = [...connections]
  const startMs = performance.now()
  const endMs = startMs + seconds * 1000
  let due = 0
  let sent = 0
  let underWay = 0
  let cut = 0

  const send = async (connection: Connection) => {
    const { request, onAnswer } = next()
    const sentMs = performance.now()
    sent += 1
    underWay += 1
    try {
      const answer = await connection.request(request)
      const latencies = latenciesMs.get(answer.status) ?? []
      latenciesMs.set(answer.status, latencies)
      latencies.push(performance.now() - sentMs)
      onAnswer?.(answer)
      free.push(connection)
    } catch {
      cut += 1
    }
    underWay -= 1
  }
  while (performance.now() < endMs) {
    const wanted = perSecond === undefined ? due + free.length : ((performance.now() - startMs) / 1000) * perSecond
    for (; due < wanted; due++) {
      const connection = free.pop()
      if (connection !== undefined) void send(connection)
    }
    // Timers are too coarse. This program has a core of its own and looks at the clock all the time.
    await new Promise((resolve) => setImmediate(resolve))
  }
  const inTime = new Map([...latenciesMs].map(([status, { length }]) => [status, length]))
  await until('all requests have ended', (see) => see(underWay) === 0)
  return {
    sentPerSecond: sent / seconds,
    answeredPerSecond: (status: number) => (inTime.get(status) ?? 0) / seconds,
    /** A percentile of the latencies of answers with a status. Answers that came after the end count. */
    latencyMs: (status: number, share: number) => percentile(latenciesMs.get(status) ?? [], share),
    /** From the last request to the last answer. */
    clearedAfterMs: performance.now() - endMs,
    /** How many connections ended without an answer. */
    cut,
    /** How many requests have no answer with a status. */
    failed: (status: number) => sent - (latenciesMs.get(status)?.length ?? 0),
  }
}
