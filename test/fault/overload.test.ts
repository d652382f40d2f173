import { describe, expect, test } from 'bun:test'
import { QUEUE_DEADLINES } from '../../src/engine/group-queue.ts'
import { median } from '../bench/statistics.ts'
import { IS_LONG } from '../support/long.ts'
import { sendRequests } from '../support/paced-requests.ts'
import { moveToLoadCore, ON_SERVER_CORE, PROCESS_TOOLS, peakMib, residentMib } from '../support/process.ts'
import { type Connection, formatRequest, openConnection, openConnections } from '../support/raw-connection.ts'
import { lacks } from '../support/requirement.ts'
import { STRACE, slowCalls } from '../support/strace.ts'
import { until } from '../support/until.ts'
import { type Answer, BUSY_REFUSAL } from './history.ts'
import { makeTestDatabase, QUIET } from './test-database.ts'

/** How many times more creates are due than the server can do. */
const OVERLOAD = 3
const USEFUL_SHARE_MIN = 0.8
/** The queue refuses a create after `QUEUE_DEADLINES.queueMs`. So many answers at once take time, too. */
const REFUSAL_LIMIT_MS = 2 * QUEUE_DEADLINES.queueMs
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

/** Measures the capacity of a server with some of the connections, and then asks for three times as much with all of them. */
async function runRound(service: Awaited<ReturnType<typeof startService>>, connectionCount: number, busyCount: number) {
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
  const isAsBefore = async () => (await createMs(probe)) <= RECOVERY_FACTOR * median(alone)
  await until('a create is as fast as before', isAsBefore, { lookMs: 0 })
  const recoveredAfterMs = result.clearedAfterMs + performance.now() - clearedMs
  for (const { cut } of connections) cut()
  const [sent, done, refused] = [result.sentPerSecond, result.answeredPerSecond(200), result.answeredPerSecond(503)]
  const told = Object.entries({ capacity, sent, done, refused, recoveredAfterMs, mib: residentMib(service.server.pid) })
  console.log(`creates a second: ${told.map(([name, value]) => `${name} ${value.toFixed(0)}`).join(', ')}`)
  return {
    cut: result.cut,
    refusalMs: result.latencyMs(503, 0.99),
    /** What was done per second, and what was sent, as multiples of the capacity. */
    usefulShare: done / capacity,
    sentShare: sent / capacity,
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
  const done: Awaited<ReturnType<typeof runRound>>[] = []
  while (done.length < ROUNDS) done.push(await runRound(service, connections, busyConnections))
  const growthMib = peakMib(pid) - residentBeforeMib
  const exitCode = await service.server.end()
  service.check()

  const middle = (name: keyof (typeof done)[number]) => median(done.map((round) => round[name]))
  expect({ exitCode, cut: middle('cut') }).toEqual({ exitCode: 0, cut: 0 })
  expect(middle('usefulShare')).toBeGreaterThanOrEqual(USEFUL_SHARE_MIN)
  expect(middle('recoveredAfterMs')).toBeLessThan(RECOVERY_LIMIT_MS)
  expect(growthMib).toBeLessThan(GROWTH_MAX_MIB)
  return { sentShare: middle('sentShare'), refusalMs: middle('refusalMs'), refusals: service.history.refusals() }
}

describe.skipIf(!IS_LONG || lacks(PROCESS_TOOLS))('a server that gets three times as many creates as it can do', () => {
  test.skipIf(lacks(STRACE))('with a slow disk does what it can, and refuses the rest within a second', async () => {
    const { sentShare, refusalMs, refusals } = await overload(SLOW_SYNCS, 8000, 2000)

    expect(refusals).toEqual([BUSY_REFUSAL])
    expect(refusalMs).toBeLessThan(REFUSAL_LIMIT_MS)
    // All of it has arrived.
    expect(sentShare).toBeGreaterThan(0.9 * OVERLOAD)
  })

  test.each([
    ['the rest waits in thousands of connections', 3000, []],
    ['some of the rest is refused, because more connections than writes may wait', 6000, [BUSY_REFUSAL]],
  ])('with a busy processor does what it can, and %s', async (_, connections, possible) => {
    const { sentShare, refusals } = await overload([], connections, 256)

    expect(possible).toEqual(expect.arrayContaining(refusals))
    // No connection was free for all of it.
    expect(sentShare).toBeLessThan(OVERLOAD)
  })
})
