import { describe, expect, test } from 'bun:test'
import { QUEUE_MAX_WAIT_MS } from '../../src/store/group-queue.ts'
import { median } from '../bench/statistics.ts'
import { IS_LONG } from '../support/long.ts'
import { formatRequest, openConnections, sendRequests } from '../support/paced-requests.ts'
import { moveToLoadCore, ON_SERVER_CORE, PROCESS_TOOLS, peakMib, residentMib } from '../support/process.ts'
import { type Connection, openConnection } from '../support/raw-connection.ts'
import { lacks } from '../support/requirement.ts'
import { STRACE, slowCalls } from '../support/strace.ts'
import { type Answer, BUSY_REFUSAL } from './history.ts'
import { makeTestDatabase, QUIET } from './test-database.ts'

/** How many times more creates are due than the server can do. */
const OVERLOAD = 3
const USEFUL_SHARE_MIN = 0.8
/** The queue refuses a create after `QUEUE_MAX_WAIT_MS`. So many answers at once take time, too. */
const REFUSAL_LIMIT_MS = 2 * QUEUE_MAX_WAIT_MS
const RECOVERY_LIMIT_MS = 1000
/** The server has recovered when a create takes no more than this many times as long as before. */
const RECOVERY_FACTOR = 3
const GROWTH_MAX_MIB = 200

const ROUNDS = 5
const CAPACITY_SECONDS = 3
const OVERLOAD_SECONDS = 5
const PROBES = 20

/** Makes each sync take a tenth of a second longer. */
const SLOW_SYNCS = slowCalls('fsync,fdatasync', 100)

/** A server on a core of its own, and the creates for it. */
async function startService(under: readonly string[]) {
  const db = await makeTestDatabase()
  const { history, token } = db
  const server = await db.serve(QUIET, { under: [...ON_SERVER_CORE, ...under] })
  moveToLoadCore()
  const next = () => {
    const write = history.create()
    return {
      request: formatRequest('POST', '/plants', token, history.plantOf(write.id)),
      onAnswer: (answer: Answer) => history.record(write, answer),
    }
  }
  return {
    ...db,
    server,
    next,
    /** How long one create takes. */
    async createMs(connection: Connection): Promise<number> {
      const { request, onAnswer } = next()
      const startMs = performance.now()
      onAnswer(await connection.request(request))
      return performance.now() - startMs
    },
  }
}

type Round = Awaited<ReturnType<typeof runRound>>
type Service = Awaited<ReturnType<typeof startService>>

/** Measures the capacity of a server with some of the connections, and then asks for three times as much with all of them. */
async function runRound(service: Service, connectionCount: number, busyCount: number) {
  const { next, createMs } = service
  // Each round opens new connections, because the server cuts idle ones.
  const connections = await openConnections(service.server.port, connectionCount)
  using probe = await openConnection(service.server.port)
  const alone: number[] = []
  while (alone.length < PROBES) alone.push(await createMs(probe))
  const busy = await sendRequests({ connections: connections.slice(0, busyCount), seconds: CAPACITY_SECONDS, next })
  const capacity = busy.answeredPerSecond(200)
  const result = await sendRequests({ connections, seconds: OVERLOAD_SECONDS, next, perSecond: OVERLOAD * capacity })
  const clearedMs = performance.now()
  while ((await createMs(probe)) > RECOVERY_FACTOR * median(alone));
  for (const { cut } of connections) cut()
  const recoveredAfterMs = result.clearedAfterMs + performance.now() - clearedMs
  const ms = (status: number) => [0.5, 0.99].map((share) => result.latencyMs(status, share).toFixed(0)).join(' and ')
  console.log(
    `${capacity.toFixed(0)} creates a second at most; of ${(OVERLOAD * capacity).toFixed(0)} due ` +
      `${result.sentPerSecond.toFixed(0)} were sent; ${result.answeredPerSecond(200).toFixed(0)} were done in ${ms(200)} ms ` +
      `(p50 and p99), ${result.answeredPerSecond(503).toFixed(0)} refused in ${ms(503)} ms; recovered after ` +
      `${recoveredAfterMs.toFixed(0)} ms; ${residentMib(service.server.pid).toFixed(0)} MiB`,
  )
  return {
    result,
    /** What was done per second, and what was sent, as multiples of the capacity. */
    usefulShare: result.answeredPerSecond(200) / capacity,
    sentShare: result.sentPerSecond / capacity,
    /** From the end of the overload until a create takes as long as before. */
    recoveredAfterMs,
  }
}

/** Runs rounds, and expects what holds at every capacity. */
async function overload(under: readonly string[], connections: number, busyConnections: number) {
  await using service = await startService(under)
  const { pid } = service.server
  await runRound(service, connections, busyConnections)
  const residentBeforeMib = residentMib(pid)
  const done: Round[] = []
  while (done.length < ROUNDS) done.push(await runRound(service, connections, busyConnections))
  const growthMib = peakMib(pid) - residentBeforeMib
  const exitCode = await service.server.end()
  service.check()

  const middle = (of: (round: Round) => number) => median(done.map(of))
  expect({ exitCode, cut: middle(({ result }) => result.cut) }).toEqual({ exitCode: 0, cut: 0 })
  expect(middle(({ usefulShare }) => usefulShare)).toBeGreaterThanOrEqual(USEFUL_SHARE_MIN)
  expect(middle(({ recoveredAfterMs }) => recoveredAfterMs)).toBeLessThan(RECOVERY_LIMIT_MS)
  expect(growthMib).toBeLessThan(GROWTH_MAX_MIB)
  return {
    sentShare: middle(({ sentShare }) => sentShare),
    refusalMs: middle(({ result }) => result.latencyMs(503, 0.99)),
    refusals: service.history.refusals(),
  }
}

describe.skipIf(!IS_LONG || lacks(PROCESS_TOOLS))('a server that gets three times as many creates as it can do', () => {
  test.skipIf(lacks(STRACE))('with a slow disk does what it can, and refuses the rest within a second', async () => {
    const { sentShare, refusalMs, refusals } = await overload(SLOW_SYNCS, 8000, 2000)

    expect(refusals).toEqual([BUSY_REFUSAL])
    expect(refusalMs).toBeLessThan(REFUSAL_LIMIT_MS)
    // All of it has arrived.
    expect(sentShare).toBeGreaterThan(0.9 * OVERLOAD)
  })

  test('with a busy processor does what it can, and the rest waits in thousands of connections', async () => {
    const { sentShare, refusals } = await overload([], 3000, 256)

    expect(refusals).toEqual([])
    // No connection was free for all of it.
    expect(sentShare).toBeLessThan(OVERLOAD)
  })

  test('with a busy processor and more connections than writes may wait does what it can', async () => {
    const { sentShare } = await overload([], 6000, 256)

    expect(sentShare).toBeLessThan(OVERLOAD)
  })
})
