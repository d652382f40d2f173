import { percentile } from '../bench/statistics.ts'
import { openConnection, type RawConnection, type Reply } from './raw-connection.ts'

/** A request, and who is told what it was answered. */
export interface Sending {
  readonly request: string
  noteReply(reply: Reply): void
}

interface StormOptions {
  readonly wires: readonly RawConnection[]
  readonly seconds: number
  readonly next: () => Sending
  /** How many requests are due a second, whatever becomes of those before; without it each follows an answer. */
  readonly perSecond?: number
}

/** What came of requests that were sent for a while. */
export interface SentRequests {
  readonly sentPerSecond: number
  /** Answers with a status, a second. */
  answeredPerSecond(status: number): number
  /** How long such answers took, those included that came after the end. */
  latencyMs(status: number, share: number): number
  /** From the end of all sending to the last answer. */
  readonly clearedAfterMs: number
  /** Connections that ended without an answer. */
  readonly cut: number
}

const OPENED_AT_ONCE = 100

/** Opens connections, a few at a time. */
export async function openConnections(port: number, count: number): Promise<RawConnection[]> {
  const wires: RawConnection[] = []
  while (wires.length < count) {
    const some = Math.min(OPENED_AT_ONCE, count - wires.length)
    wires.push(...(await Promise.all(Array.from({ length: some }, () => openConnection(port)))))
  }
  return wires
}

/**
 * Sends requests over connections, each of which has one under way at a time. One that is due while no connection is free
 * is never sent: `sentPerSecond` says how many were.
 */
export async function sendRequests({ wires, seconds, next, perSecond }: StormOptions): Promise<SentRequests> {
  const latenciesMs = new Map<number, number[]>()
  const free = [...wires]
  const startMs = performance.now()
  const endMs = startMs + seconds * 1000
  let due = 0
  let sent = 0
  let underWay = 0
  let cut = 0

  const send = async (wire: RawConnection) => {
    const sentMs = performance.now()
    const { request, noteReply } = next()
    sent += 1
    underWay += 1
    try {
      const reply = await wire.ask(request)
      const latencies = latenciesMs.get(reply.status)
      if (latencies === undefined) latenciesMs.set(reply.status, [performance.now() - sentMs])
      else latencies.push(performance.now() - sentMs)
      noteReply(reply)
      free.push(wire)
    } catch {
      cut += 1
    }
    underWay -= 1
  }
  const sendDue = () => {
    const wanted = perSecond === undefined ? due + free.length : ((performance.now() - startMs) / 1000) * perSecond
    for (; due < wanted; due++) {
      const wire = free.pop()
      if (wire !== undefined) void send(wire)
    }
  }
  while (performance.now() < endMs) {
    sendDue()
    // Timers are too coarse: the core belongs to this program, and it looks at the clock all the time.
    await new Promise((resolve) => setImmediate(resolve))
  }
  const inTime = new Map([...latenciesMs].map(([status, { length }]) => [status, length]))
  while (underWay > 0) await Bun.sleep(1)
  return {
    sentPerSecond: sent / seconds,
    answeredPerSecond: (status) => (inTime.get(status) ?? 0) / seconds,
    latencyMs: (status, share) => percentile(latenciesMs.get(status) ?? [], share),
    clearedAfterMs: performance.now() - endMs,
    cut,
  }
}
