import { describe, expect, test } from 'bun:test'
import { SLOW_READER_S } from '../../src/http/server.ts'
import { makeFolder } from '../support/folder.ts'
import { lacks } from '../support/requirement.ts'
import { type HoldingName, holdConnections } from './held-connections.ts'
import { compareP99, startService, until, untilAtRest } from './other-clients.ts'
import { countDescriptors, PROCESS_TOOLS, peakMib, residentMib } from './process.ts'
import { openConnection } from './raw-connection.ts'
import { IS_LONG, ROUNDS_TIMEOUT_MS, rounds, testLong } from './rounds.ts'

/** Of the list that is never read: far more than the buffers of a connection hold. */
const PLANTS = rounds(200_000, 1_000_000)

/** Lists that are not read would take several times as much if they were kept in memory. */
const GROWTH_MAX_MIB = 160

/** The default of `--idle-timeout`. */
const IDLE_TIMEOUT_MS = 75_000
const CUT_AFTER_MS: Readonly<Partial<Record<string, number>>> = {
  'long lists that are never read': SLOW_READER_S * 1000,
}
/** The runtime looks every four seconds; the rest is for the machine's own delays. */
const CUT_SLACK_MS = 4000 + 6000

const CROWD = {
  'half-sent heads': 100,
  'heads of a byte a second': 100,
  'bodies of a byte a second': 100,
  'long lists that are never read': 20,
  'idle connections': rounds(500, 5000),
} as const satisfies Record<HoldingName, number>

/** All of them at once; in the long form also each way by itself. */
const CROWDS: readonly (readonly [name: string, counts: Partial<Record<HoldingName, number>>])[] = [
  ['slow clients of every kind', CROWD],
  ...(IS_LONG ? Object.entries(CROWD) : []).map(([name, count]) => [name, { [name]: count }] as const),
]

describe.skipIf(lacks(PROCESS_TOOLS)).each(CROWDS)('%s', (_, counts) => {
  const count = Object.values(counts).reduce((sum, each) => sum + each, 0)

  test(
    'leave the p99 of others as it is, and memory bounded',
    async () => {
      using folder = makeFolder()
      await using service = await startService(folder.path, PLANTS)
      const { pid, port } = service.server
      await service.p99Ms()
      const residentBeforeMib = residentMib(pid)
      const untilTaken = waitForAll(pid, count)
      const { besideMs, limitMs } = await compareP99(service, async () => {
        const held = await holdConnections(port, service.token, counts)
        await untilTaken(held)
        // By then lists have been sent as far as buffers hold them. With slow bytes a busy machine would never come to rest.
        await untilAtRest(pid)
        held.startDripping()
        return held
      })

      console.log(`memory: ${residentBeforeMib.toFixed(0)} MiB before, ${peakMib(pid).toFixed(0)} MiB at most`)
      // The short form runs beside other tests: there it counts that others are answered at all.
      if (IS_LONG) expect(besideMs).toBeLessThan(limitMs)
      expect(peakMib(pid) - residentBeforeMib).toBeLessThan(GROWTH_MAX_MIB)
    },
    ROUNDS_TIMEOUT_MS,
  )

  testLong('are cut in time at bounded memory, and leave nothing behind', async () => {
    using folder = makeFolder()
    await using service = await startService(folder.path, PLANTS)
    const { pid, port, stdout } = service.server
    await service.p99Ms()
    const residentBeforeMib = residentMib(pid)
    const descriptors = countDescriptors(pid)
    const untilTaken = waitForAll(pid, count)
    using held = await holdConnections(port, service.token, counts)
    held.startDripping()
    const startMs = performance.now()
    await untilTaken(held)
    await until(() => countDescriptors(pid) <= descriptors)

    console.log(`all were cut after ${((performance.now() - startMs) / 1000).toFixed(1)} s`)
    const limitsMs = Object.keys(counts).map((name) => CUT_AFTER_MS[name] ?? IDLE_TIMEOUT_MS)
    expect(performance.now() - startMs).toBeLessThan(Math.max(...limitsMs) + CUT_SLACK_MS)
    console.log(`memory: ${residentBeforeMib.toFixed(0)} MiB before, ${peakMib(pid).toFixed(0)} MiB at most`)
    expect(peakMib(pid) - residentBeforeMib).toBeLessThan(GROWTH_MAX_MIB)
    using wire = await openConnection(port)
    expect(await service.create(wire)).toBe(200)
    expect(stdout()).not.toContain('"level":"error"')
  })
})

/**
 * Waits until a server has accepted so many connections more than now. On a busy machine the first heads are cut, after 12 seconds,
 * before the last connection is accepted.
 */
function waitForAll(pid: number, count: number) {
  const descriptors = countDescriptors(pid)
  return ({ countEnded }: Pick<Awaited<ReturnType<typeof holdConnections>>, 'countEnded'>): Promise<void> =>
    until(() => countDescriptors(pid) + countEnded() >= descriptors + count)
}
