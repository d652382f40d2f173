import { expect } from 'bun:test'
import { chmodSync } from 'node:fs'
import { MOUNTS, mountDisk } from '../../support/disk.ts'
import { MEMORY, makeFolder } from '../../support/folder.ts'
import { type Cluster, makeServerFolder } from '../../support/postgres-cluster.ts'
import { until } from '../../support/until.ts'
import { FULL_REFUSAL } from '../history.ts'
import { freeze } from './processes.ts'
import { type Round, testFault } from './round.ts'

/** The smallest --idle-timeout. The server cuts requests that have no answer by then. */
const IDLE_TIMEOUT_MIN_MS = 5000
/** Requests during a standstill, at every stage of what a store finds out. */
const REQUESTS = 12
const REQUEST_PAUSE_MS = 250

/** Begins an outage. Resolves to a function that ends it. */
type Outage = (cluster: Cluster, round: Round) => Promise<() => unknown>

const restart =
  (mode: 'fast' | 'immediate'): Outage =>
  async (cluster) => {
    cluster.stop(mode)
    return cluster.start
  }

/** Freezes the server. Every request must be answered before the idle timeout cuts it. */
const standStill: Outage = async (cluster, { service, token }) => {
  const frozen = freeze(cluster)
  const ask = async (method: string, path: string) => {
    const sentMs = performance.now()
    const response = await service.request(method, path, { token })
    expect(response.status, await response.text()).toBe(503)
    return performance.now() - sentMs
  }
  const askAll = async () => {
    const asked: Promise<number>[] = []
    for (let request = 0; request < REQUESTS; request++) {
      asked.push(ask('DELETE', '/plants/0'), ask('GET', '/plants?limit=1'))
      await Bun.sleep(REQUEST_PAUSE_MS)
    }
    return Math.max(...(await Promise.all(asked)))
  }
  const asking = askAll()
  return async () => {
    try {
      const longestMs = await asking
      console.log(`longest time to an answer while it stands still: ${Math.round(longestMs)} ms`)
      expect(longestMs).toBeLessThan(IDLE_TIMEOUT_MIN_MS)
    } finally {
      frozen[Symbol.dispose]()
    }
  }
}

for (const [name, short, long, begin] of [
  ['while its server is restarted in the mode fast', 1, 30, restart('fast')],
  ['while its server is restarted in the mode immediate', 1, 30, restart('immediate')],
  ['while its server stands still', 0, 20, standStill],
] as const) {
  testFault({
    ...{ name, short, long },
    async run({ cluster, round }) {
      const end = await begin(cluster, round)
      try {
        await round.untilRefusing()
      } finally {
        await end()
      }
      return undefined
    },
  })
}

const DISK_BYTES = 96 * 1024 ** 2
const ROOM_MAX_BYTES = 256 * 1024

for (const what of ['tables', 'WAL'] as const) {
  let disk: ReturnType<typeof mountDisk> | undefined
  testFault({
    ...{ name: `while its server has no room for its ${what}`, long: 20, needs: [MOUNTS] },
    settings: { wal_recycle: 'off' },
    refusals: [FULL_REFUSAL],
    place() {
      const mounted = mountDisk(DISK_BYTES)
      // The user of the server must reach its folder.
      chmodSync(mounted.path, 0o755)
      const elsewhere = makeFolder(MEMORY)
      const log = makeServerFolder(elsewhere.path, 'log')
      disk = mounted
      return {
        parent: mounted.path,
        // Without room for tables a statement fails that needs a new page, and the server goes on, because its WAL is on another
        // disk. With small files of the WAL there is room for some, and a new one is needed soon.
        initFlags: what === 'tables' ? [`--waldir=${log}`] : ['--wal-segsize=1'],
        [Symbol.dispose]() {
          mounted[Symbol.dispose]()
          elsewhere[Symbol.dispose]()
        },
      }
    },
    async run({ cluster, round, random }) {
      disk?.fillUp(random(ROOM_MAX_BYTES))
      await round.untilRefusing()
      disk?.makeRoom()
      await until('the server answers', () => {
        // A server that could not write its WAL ends with all its processes. It may still be ending.
        if (!cluster.isRunning()) cluster.start()
        return cluster.answers()
      })
      if (what === 'tables') expect(round.history.refusals()).toContain(FULL_REFUSAL)
      return undefined
    },
  })
}
