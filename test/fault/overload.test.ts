import { describe, expect, test } from 'bun:test'
import { join } from 'node:path'
import { median } from '../bench/statistics.ts'
import { serve } from '../support/executable.ts'
import { makeFolder } from '../support/folder.ts'
import { lacks } from '../support/requirement.ts'
import { STRACE } from '../support/strace.ts'
import { createTokenIn } from '../support/tokens.ts'
import { plantOf, startHistory } from './history.ts'
import { openConnections, type SentRequests, sendRequests } from './paced-requests.ts'
import { moveToLoadCore, ON_SERVER_CORE, PROCESS_TOOLS, peakMib, residentMib } from './process.ts'
import { formatRequest, openConnection, type RawConnection, type Reply } from './raw-connection.ts'
import { IS_LONG } from './rounds.ts'

/** How much more is due than can be done. */
const OVERLOAD = 3
const USEFUL_SHARE_MIN = 0.8
/** For "quickly": what waits for a place in a group, or longer, has not been refused quickly. */
const REFUSAL_LIMIT_MS = 500
const WELL_LIMIT_MS = 1000
/** A create is answered as before again if it takes no longer than this many times what it took. */
const WELL_FACTOR = 3
const GROWTH_MAX_MIB = 200

const ROUNDS = 5
const CAPACITY_SECONDS = 3
const STORM_SECONDS = 5
const PROBES = 20

/** Makes each sync take a tenth of a second longer (https://man7.org/linux/man-pages/man1/strace.1.html, "Tampering"). */
const SLOW_SYNCS = [
  ...['strace', '-D', '-f', '--seccomp-bpf', '-o', '/dev/null', '-e', 'trace=fsync,fdatasync'],
  ...['-e', 'inject=fsync,fdatasync:delay_exit=100000'],
]

/** A server on a core of its own that is made to do as much as it can, then is asked for three times as much. */
async function startService(folder: string, under: readonly string[]) {
  const database = join(folder, 'plantstore.db')
  const token = await createTokenIn(database)
  const server = await serve(database, ['--access-log', 'off'], { under: [...ON_SERVER_CORE, ...under] })
  moveToLoadCore()
  const history = startHistory()
  const refusals = new Set<string>()
  const next = () => {
    const entry = history.create()
    return {
      request: formatRequest('POST', '/plants', token, plantOf(entry.id)),
      noteReply({ status, head, body }: Reply) {
        history.record(entry, status, body)
        if (status !== 200)
          refusals.add(`${status} ${JSON.parse(body).error} ${/^retry-after: (.*)$/im.exec(head)?.[1]}`)
      },
    }
  }
  return {
    database,
    server,
    history,
    /** Statuses, codes and `Retry-After` of what was refused. */
    refusals,
    next,
    /** How long a create takes by itself. */
    async createMs(wire: RawConnection): Promise<number> {
      const { request, noteReply } = next()
      const startMs = performance.now()
      noteReply(await wire.ask(request))
      return performance.now() - startMs
    },
    [Symbol.asyncDispose]: server.kill,
  }
}

interface Round {
  readonly capacity: number
  readonly result: SentRequests
  readonly usefulShare: number
  /** From the end of the sendRequests until a create takes as long as before. */
  readonly wellAfterMs: number
}

type Service = Awaited<ReturnType<typeof startService>>

async function runRound(service: Service, connections: number, busyConnections: number): Promise<Round> {
  const { next, createMs } = service
  // New ones for each round: the server cuts those that are idle.
  const wires = await openConnections(service.server.port, connections)
  using probe = await openConnection(service.server.port)
  const alone: number[] = []
  while (alone.length < PROBES) alone.push(await createMs(probe))
  const busy = await sendRequests({ wires: wires.slice(0, busyConnections), seconds: CAPACITY_SECONDS, next })
  const capacity = busy.answeredPerSecond(200)
  const result = await sendRequests({ wires, seconds: STORM_SECONDS, next, perSecond: OVERLOAD * capacity })
  const clearedMs = performance.now()
  while ((await createMs(probe)) > WELL_FACTOR * median(alone));
  for (const wire of wires) wire.cut()
  const usefulShare = result.answeredPerSecond(200) / capacity
  const wellAfterMs = result.clearedAfterMs + performance.now() - clearedMs
  const ms = (status: number) => [0.5, 0.99].map((share) => result.latencyMs(status, share).toFixed(0)).join(' and ')
  console.log(
    `${capacity.toFixed(0)} creates a second at most; of ${(OVERLOAD * capacity).toFixed(0)} due ` +
      `${result.sentPerSecond.toFixed(0)} were sent; ${result.answeredPerSecond(200).toFixed(0)} were done in ${ms(200)} ms ` +
      `(p50 and p99), ${result.answeredPerSecond(503).toFixed(0)} refused in ${ms(503)} ms; well after ` +
      `${wellAfterMs.toFixed(0)} ms; ${residentMib(service.server.pid).toFixed(0)} MiB`,
  )
  return { capacity, result, usefulShare, wellAfterMs }
}

/** Runs rounds, and checks what holds in all of them whatever the capacity. */
async function overload(under: readonly string[], connections: number, busyConnections: number) {
  using folder = makeFolder()
  await using service = await startService(folder.path, under)
  const { pid } = service.server
  await runRound(service, connections, busyConnections)
  const residentBeforeMib = residentMib(pid)
  const done: Round[] = []
  while (done.length < ROUNDS) done.push(await runRound(service, connections, busyConnections))
  const growthMib = peakMib(pid) - residentBeforeMib
  const exitCode = await service.server.end()
  service.history.check(service.database)

  const middle = (of: (round: Round) => number) => median(done.map(of))
  expect({ exitCode, cut: middle(({ result }) => result.cut) }).toEqual({ exitCode: 0, cut: 0 })
  expect(middle(({ usefulShare }) => usefulShare)).toBeGreaterThanOrEqual(USEFUL_SHARE_MIN)
  expect(middle(({ wellAfterMs }) => wellAfterMs)).toBeLessThan(WELL_LIMIT_MS)
  expect(growthMib).toBeLessThan(GROWTH_MAX_MIB)
  return { middle, refusals: service.refusals }
}

describe.skipIf(!IS_LONG || lacks(PROCESS_TOOLS))('three times as many creates as can be done', () => {
  test.skipIf(lacks(STRACE))('by a slow disk: what can be done is done, and the rest is refused quickly', async () => {
    const { middle, refusals } = await overload(SLOW_SYNCS, 8000, 2000)

    expect([...refusals]).toEqual(['503 50303 1'])
    expect(middle(({ result }) => result.latencyMs(503, 0.99))).toBeLessThan(REFUSAL_LIMIT_MS)
    // All of it has arrived.
    expect(middle(({ capacity, result }) => result.sentPerSecond / capacity)).toBeGreaterThan(0.9 * OVERLOAD)
  })

  test('by the processor, from thousands of connections: what can be done is done, and the rest waits in them', async () => {
    const { middle, refusals } = await overload([], 3000, 256)

    expect([...refusals]).toEqual([])
    // No connection was free for all of it.
    expect(middle(({ capacity, result }) => result.sentPerSecond / capacity)).toBeLessThan(OVERLOAD)
  })

  test('by the processor, from more connections than writes may wait: what can be done is done', async () => {
    const { middle } = await overload([], 6000, 256)

    expect(middle(({ capacity, result }) => result.sentPerSecond / capacity)).toBeLessThan(OVERLOAD)
  })
})
