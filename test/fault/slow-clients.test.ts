import { describe, expect, test } from 'bun:test'
import { SLOW_READER_S } from '../../src/http/server.ts'
import { openConnection } from '../support/raw-connection.ts'
import { lacks } from '../support/requirement.ts'
import { holdConnections, type SlowClientKind } from './held-connections.ts'
import { compareP99, type OthersService, serveOthers, untilAtRest } from './other-clients.ts'
import { countDescriptors, PROCESS_TOOLS, peakMib, residentMib } from './process.ts'
import { IS_LONG, ROUNDS_TIMEOUT_MS, rounds, testLong } from './rounds.ts'
import { until } from './until.ts'

/** The list that nobody reads is far longer than the buffers of a connection. */
const PLANTS = rounds(200_000, 1_000_000)

/** Unread lists would take several times as much memory if the server kept them. */
const GROWTH_MAX_MIB = 160

/** The default of `--idle-timeout`. */
const IDLE_TIMEOUT_MS = 75_000
const CUT_AFTER_MS: Readonly<Partial<Record<string, number>>> = {
  'long lists that nobody reads': SLOW_READER_S * 1000,
}
/** The runtime looks every four seconds. The rest is for the machine's own delays. */
const CUT_SLACK_MS = 4000 + 6000

const CROWD = {
  'half-sent heads': 100,
  'heads at a byte per second': 100,
  'bodies at a byte per second': 100,
  'long lists that nobody reads': 20,
  'idle connections': rounds(500, 5000),
} as const satisfies Record<SlowClientKind, number>

/** All kinds at once. The long form also has each kind by itself. */
const CROWDS: readonly (readonly [name: string, counts: Partial<Record<SlowClientKind, number>>])[] = [
  ['slow clients of every kind', CROWD],
  ...(IS_LONG ? Object.entries(CROWD) : []).map(([name, count]) => [name, { [name]: count }] as const),
]

describe.skipIf(lacks(PROCESS_TOOLS)).each(CROWDS)('%s', (_, counts) => {
  test(
    'do not slow down other clients, and take bounded memory',
    async () => {
      await using service = await serveOthers(PLANTS)
      const expectBoundedMemory = await watchMemory(service)
      const { besideMs, limitMs } = await compareP99(service, async () => {
        const held = await holdAll(service, counts)
        // Now the buffers are full of lists. With slow bytes a busy machine would never come to rest.
        await untilAtRest(service.server.pid)
        held.startSlowBytes()
        return held
      })

      // The short form runs beside other tests. There it shows that others are answered at all.
      if (IS_LONG) expect(besideMs).toBeLessThan(limitMs)
      expectBoundedMemory()
    },
    ROUNDS_TIMEOUT_MS,
  )

  testLong('are cut in time, take bounded memory, and leave nothing behind', async () => {
    await using service = await serveOthers(PLANTS)
    const { pid, port, stdout } = service.server
    const expectBoundedMemory = await watchMemory(service)
    const descriptors = countDescriptors(pid)
    const limitMs = Math.max(...Object.keys(counts).map((name) => CUT_AFTER_MS[name] ?? IDLE_TIMEOUT_MS))
    const startMs = performance.now()
    using held = await holdAll(service, counts)
    held.startSlowBytes()
    await until('all are cut', () => countDescriptors(pid) <= descriptors, 2 * limitMs)

    console.log(`all were cut after ${((performance.now() - startMs) / 1000).toFixed(1)} s`)
    expect(performance.now() - startMs).toBeLessThan(limitMs + CUT_SLACK_MS)
    expectBoundedMemory()
    using connection = await openConnection(port)
    expect(await service.create(connection)).toBe(200)
    expect(stdout()).not.toContain('"level":"error"')
  })
})

/** Holds connections once the server has accepted all of them. A busy machine cuts the first heads, after 12 s, before that. */
async function holdAll({ server, token }: OthersService, counts: Partial<Record<SlowClientKind, number>>) {
  const descriptors = countDescriptors(server.pid)
  const count = Object.values(counts).reduce((sum, each) => sum + each, 0)
  const held = await holdConnections(server.port, token, counts)
  await until('all are accepted', () => countDescriptors(server.pid) + held.countEnded() >= descriptors + count)
  return held
}

/** Warms the server up. Resolves to a function that expects bounded growth of memory since then. */
async function watchMemory({ server: { pid }, p99Ms }: OthersService) {
  await p99Ms()
  const beforeMib = residentMib(pid)
  return () => {
    console.log(`memory: ${beforeMib.toFixed(0)} MiB before, ${peakMib(pid).toFixed(0)} MiB at most`)
    expect(peakMib(pid) - beforeMib).toBeLessThan(GROWTH_MAX_MIB)
  }
}
