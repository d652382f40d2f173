import { randomNumbers } from '../../support/random.ts'
import { percentile } from '../statistics.ts'
import { type Connection, openConnection } from './connection.ts'
import { createRequests, listRequests } from './requests.ts'

/** A schedule of requests: one every `1 / perSecond` seconds, without waiting for earlier answers. */
export interface Schedule {
  readonly name: string
  readonly kind: 'list' | 'create'
  readonly perSecond: number
  readonly connections: number
  /** The id of the first create. */
  readonly firstId: number
  /** A file with one token on each line. Requests use the tokens in random order. */
  readonly tokensFile: string
}

/** The result of a schedule after its warm-up. A latency starts at the intended time of the request. */
export interface StreamResult {
  readonly name: string
  readonly intendedPerSecond: number
  /** The rate of the sent requests. */
  readonly sentPerSecond: number
  readonly p50Ms: number
  readonly p99Ms: number
  readonly maxMs: number
  /** The delay between the intended time of a request and the generator's turn, before a wait for a free connection. */
  readonly lagP99Ms: number
}

/** A running schedule. */
export interface Stream {
  /** Sends the requests that are due. Requests wait in order for a free connection. */
  advance(nowMs: number): void
  isOver(): boolean
  result(): StreamResult
  close(): void
}

const SEED = 42

/** Opens the connections of a schedule. `begin` sets its start in the time of `performance.now()`. */
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
