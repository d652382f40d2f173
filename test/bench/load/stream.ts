import { randomNumbers } from '../../support/random.ts'
import { percentile } from '../statistics.ts'
import { type Connection, openConnection } from './connection.ts'
import { createRequests, listRequests } from './requests.ts'

/** A schedule of requests: one every `1 / perSecond` seconds, whatever becomes of those before it. */
export interface Schedule {
  readonly name: string
  readonly kind: 'list' | 'create'
  readonly perSecond: number
  readonly connections: number
  /** Of the id that the first create has. */
  readonly firstId: number
  /** A file of tokens, a line each; requests take them in random order. */
  readonly tokensFile: string
}

/** What became of a schedule after its warm-up. Latencies count from when a request was to be sent. */
export interface StreamResult {
  readonly name: string
  readonly intendedPerSecond: number
  /** How many a second were sent. */
  readonly sentPerSecond: number
  readonly p50Ms: number
  readonly p99Ms: number
  readonly maxMs: number
  /** How late the generator itself came to a request, before it looked for a free connection. */
  readonly lagP99Ms: number
}

/** A schedule under way. */
export interface Stream {
  /** Sends what is due; what finds no free connection waits for one, in order. */
  advance(nowMs: number): void
  isOver(): boolean
  result(): StreamResult
  close(): void
}

const SEED = 42

/** Opens the connections of a schedule that starts at `startMs` of `performance.now()`, as told by `begin`. */
export async function openStream(
  { name, kind, perSecond, connections, firstId, tokensFile }: Schedule,
  port: number,
  warmUpSeconds: number,
  seconds: number,
): Promise<Stream & { begin(startMs: number): void }> {
  const tokens = (await Bun.file(tokensFile).text()).trim().split('\n')
  const requestOf = kind === 'list' ? listRequests(tokens) : createRequests(tokens, firstId)
  const random = randomNumbers(SEED)
  const total = Math.round(perSecond * (warmUpSeconds + seconds))
  const warmUp = Math.round(perSecond * warmUpSeconds)
  const intervalMs = 1000 / perSecond
  const latenciesMs = new Float64Array(total)
  const lagsMs = new Float64Array(total)
  const free: Connection[] = []
  let startMs = 0
  let due = 0
  let sent = 0
  let answered = 0
  let firstSentMs = 0
  let lastSentMs = 0

  const sendDue = (nowMs: number) => {
    while (sent < due) {
      const connection = free.pop()
      if (connection === undefined) return
      if (sent === warmUp) firstSentMs = nowMs
      lastSentMs = nowMs
      connection.send(requestOf(random(tokens.length), firstId + sent), sent)
      sent += 1
    }
  }
  const onAnswer = (connection: Connection, index: number) => {
    const nowMs = performance.now()
    latenciesMs[index] = nowMs - (startMs + index * intervalMs)
    answered += 1
    free.push(connection)
    sendDue(nowMs)
  }
  free.push(...(await Promise.all(Array.from({ length: connections }, () => openConnection(port, onAnswer)))))

  return {
    begin(atMs) {
      startMs = atMs
    },
    advance(nowMs) {
      while (due < total && startMs + due * intervalMs <= nowMs) {
        lagsMs[due] = nowMs - (startMs + due * intervalMs)
        due += 1
      }
      sendDue(nowMs)
    },
    isOver: () => answered === total,
    result() {
      const measuredMs = latenciesMs.subarray(warmUp)
      return {
        name,
        intendedPerSecond: perSecond,
        sentPerSecond: ((total - warmUp - 1) * 1000) / (lastSentMs - firstSentMs),
        p50Ms: percentile(measuredMs, 0.5),
        p99Ms: percentile(measuredMs, 0.99),
        maxMs: percentile(measuredMs, 1),
        lagP99Ms: percentile(lagsMs.subarray(warmUp), 0.99),
      }
    },
    close() {
      for (const connection of free) connection.close()
    },
  }
}
