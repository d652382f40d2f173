import { expect } from 'bun:test'
import { administer } from '../../support/postgres.ts'
import { type Cluster, startCluster } from '../../support/postgres-cluster.ts'
import { OWN_POSTGRES } from '../../support/postgres-system.ts'
import { BUSY_REFUSAL, FAILED_REFUSAL } from '../history.ts'
import { testRounds } from '../rounds.ts'
import { freeze } from './processes.ts'
import { type Round, startRound } from './round.ts'

/** So few that a test can take all of them. */
const CONNECTIONS_MAX = '40'
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
    await response.text()
    expect(response.status).toBe(503)
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

/** Ends the connections of the service, and takes all connections before it can have new ones. */
const takeAllConnections: Outage = async ({ url }, { service }) => {
  const released = Promise.withResolvers<void>()
  const taken: Promise<void>[] = []
  /** Takes one more connection until `released`. Resolves to whether there was one. */
  const takeOne = () =>
    new Promise<boolean>((resolve) => {
      const holding = administer(url, async (sql) => {
        await sql`select 1`
        resolve(true)
        await released.promise
      })
      taken.push(holding.catch(() => resolve(false)))
    })
  process.kill(service.pid, 'SIGSTOP')
  try {
    await administer(url, async (sql) => {
      await sql`select pg_terminate_backend(pid, 5000) from pg_stat_activity where application_name = 'plantstore'`
      while (await takeOne());
    })
    // The connection that has ended the others is free now.
    while (await takeOne());
  } finally {
    process.kill(service.pid, 'SIGCONT')
  }
  return () => {
    released.resolve()
    return Promise.all(taken)
  }
}

const OUTAGES: readonly {
  readonly name: string
  readonly short: number
  readonly long: number
  readonly begin: Outage
}[] = [
  { name: 'the database server is restarted in the mode fast', short: 1, long: 30, begin: restart('fast') },
  { name: 'the database server is restarted in the mode immediate', short: 1, long: 30, begin: restart('immediate') },
  { name: 'the database server stands still', short: 0, long: 20, begin: standStill },
  { name: 'others have all connections of the database server', short: 0, long: 20, begin: takeAllConnections },
]

for (const { name, short, long, begin } of OUTAGES) {
  testRounds(
    `a service answers writes by 503 and loses no acknowledged one while ${name}`,
    { short, long, needs: [OWN_POSTGRES] },
    async (random) => {
      using cluster = await startCluster({ max_connections: CONNECTIONS_MAX, superuser_reserved_connections: '0' })
      await using round = await startRound(cluster.url, random)
      const end = await begin(cluster, round)
      try {
        await round.untilRefusing()
      } finally {
        await end()
      }
      await round.untilStoring()
      await round.check([FAILED_REFUSAL, BUSY_REFUSAL])
    },
  )
}
