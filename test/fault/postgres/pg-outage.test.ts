import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { SQL } from 'bun'
import { administer } from '../../support/postgres.ts'
import { type Cluster, startCluster } from '../../support/postgres-cluster.ts'
import { OWN_POSTGRES } from '../../support/postgres-system.ts'
import type { Random } from '../../support/random.ts'
import { lacks } from '../../support/requirement.ts'
import { BUSY_REFUSAL, FAILED_REFUSAL } from '../history.ts'
import { ROUNDS_TIMEOUT_MS, rounds, runRounds, testLong } from '../rounds.ts'
import { freeze } from './processes.ts'
import { printLongestRecovery, type Round, startRound } from './round.ts'

/** So few that a test can take all of them. */
const CONNECTIONS_MAX = 40
/** The smallest --idle-timeout. The server cuts requests that have no answer by then. */
const IDLE_TIMEOUT_MIN_MS = 5000
/** Requests during a standstill, at every stage of what a store finds out. */
const REQUESTS = 12
const REQUEST_PAUSE_MS = 250

/** Begins an outage. Resolves to a function that ends it. */
type Outage = (round: Round) => Promise<() => unknown>

let cluster: Cluster

describe.skipIf(lacks(OWN_POSTGRES))('a service answers writes by 503 and loses no acknowledged one', () => {
  const recoveries = printLongestRecovery()
  beforeAll(async () => {
    cluster = await startCluster({ max_connections: String(CONNECTIONS_MAX), superuser_reserved_connections: '0' })
  })
  afterAll(() => cluster[Symbol.dispose]())

  const suffer = async (outage: Outage, random: Random) => {
    await using round = await startRound(cluster.url, random)
    const end = await outage(round)
    try {
      await round.untilRefusing()
    } finally {
      await end()
    }
    recoveries.record(await round.untilStoring())
    await round.check([FAILED_REFUSAL, BUSY_REFUSAL])
  }

  test.each(['fast', 'immediate'] as const)(
    'while the database server is restarted in the mode %s',
    (mode) => runRounds(rounds(1, 30), (random) => suffer(restart(mode), random)),
    ROUNDS_TIMEOUT_MS,
  )
  testLong(
    'while the database server stands still',
    () => runRounds(20, (random) => suffer(standStill, random)),
    ROUNDS_TIMEOUT_MS,
  )
  testLong(
    'while others have all connections of the database server',
    () => runRounds(20, (random) => suffer(takeAllConnections, random)),
    ROUNDS_TIMEOUT_MS,
  )
})

const restart =
  (mode: 'fast' | 'immediate'): Outage =>
  async () => {
    cluster.stop(mode)
    return cluster.start
  }

/** Freezes the server. Every request must be answered before the idle timeout cuts it. */
const standStill: Outage = async ({ service, token }) => {
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
const takeAllConnections: Outage = async ({ service }) => {
  const others: SQL[] = []
  process.kill(service.pid, 'SIGSTOP')
  try {
    await administer(cluster.url, async (sql) => {
      await sql`select pg_terminate_backend(pid, 5000) from pg_stat_activity where application_name = 'plantstore'`
      while (await takeOne(others));
    })
    // The connection that has ended the others is free now.
    while (await takeOne(others));
  } finally {
    process.kill(service.pid, 'SIGCONT')
  }
  return () => Promise.all(others.map((sql) => sql.close()))
}

/** Takes one more connection. Returns whether there was one. */
async function takeOne(others: SQL[]): Promise<boolean> {
  const sql = new SQL({
    url: 'postgres://localhost/',
    adapter: 'postgres',
    path: cluster.socket,
    username: 'plantstore',
    database: 'postgres',
    max: 1,
  })
  try {
    await sql`select 1`
    others.push(sql)
    return true
  } catch (error) {
    await sql.close()
    if (error instanceof SQL.PostgresError && error.errno === '53300') return false
    throw error
  }
}
