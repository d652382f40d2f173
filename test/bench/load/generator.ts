/**
 * Sends requests at fixed times, without waiting for earlier answers, and measures latency from those times. Usage:
 * `bun generator.ts PLAN`, where PLAN is a `Plan` in JSON. Prints a `StreamResult` for each schedule as JSON.
 */
import { randomNumbers } from '../../support/random.ts'
import { percentile } from '../statistics.ts'
import { type Connection, openConnection } from './connection.ts'
import type { Plan } from './open-loop.ts'
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
interface Stream {
  /** Sets the start, in the time of `performance.now()`. */
  begin(startMs: number): void
  /** Sends the requests that are due. Requests wait in order for a free connection. */
  advance(nowMs: number): void
  isOver(): boolean
  result(): StreamResult
  close(): void
}

/** Time after the plan for the last answers. */
const GRACE_SECONDS = 20
const SEED = 42

// A connection throws. A measurement with an error is worthless.
process.once('uncaughtException', ({ message }) => {
  console.error(message)
  process.exit(1)
})

const { port, warmUpSeconds, seconds, schedules }: Plan = JSON.parse(process.argv[2] ?? '')
const streams = await Promise.all(schedules.map((schedule) => openStream(schedule, port, warmUpSeconds, seconds)))
const startMs = performance.now()
const deadlineMs = startMs + (warmUpSeconds + seconds + GRACE_SECONDS) * 1000
for (const stream of streams) stream.begin(startMs)
while (!streams.every((stream) => stream.isOver())) {
  const nowMs = performance.now()
  if (nowMs > deadlineMs) throw new Error('the server left requests without an answer')
  for (const stream of streams) stream.advance(nowMs)
  // Timers are too coarse, so the program polls the clock. The core has nothing else to do.
  await new Promise((resolve) => setImmediate(resolve))
}
console.log(JSON.stringify(streams.map((stream) => stream.result())))
for (const stream of streams) stream.close()

/** Opens the connections of a schedule. */
async function openStream(
  { name, kind, perSecond, connections, firstId, tokensFile }: Schedule,
  port: number,
  warmUpSeconds: number,
  seconds: number,
): Promise<Stream> {
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
