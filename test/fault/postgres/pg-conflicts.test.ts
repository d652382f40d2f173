import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { SQL } from 'bun'
import { administer } from '../../support/postgres.ts'
import { type Cluster, startCluster } from '../../support/postgres-cluster.ts'
import { OWN_POSTGRES } from '../../support/postgres-system.ts'
import { lacks } from '../../support/requirement.ts'
import { BUSY_REFUSAL } from '../history.ts'
import { IS_LONG, ROUNDS_TIMEOUT_MS, runRounds } from '../rounds.ts'
import { until } from '../until.ts'
import { type Round, startRound } from './round.ts'

const ROUNDS = 20
/** Statements of the service that the server aborts in a round. */
const ABORTS = 30
/** The part of writes that may be refused on a busy machine. The service repeats all others until they succeed. */
const REFUSED_MAX = 0.01
/** Plants that another client stores and takes back, with the ids of the service's next groups. */
const AHEAD = 300

let cluster: Cluster
const aborted = { '40P01': 0, '40001': 0 }

describe.skipIf(!IS_LONG || lacks(OWN_POSTGRES))('a service repeats writes until they succeed', () => {
  beforeAll(async () => {
    // The log shows the SQLSTATE of each error, and which program got it.
    cluster = await startCluster({ deadlock_timeout: '100ms', log_line_prefix: '%e %a: ' })
  })
  afterAll(() => {
    cluster[Symbol.dispose]()
    console.log(`aborted statements of the service: ${JSON.stringify(aborted)}`)
  })

  test(
    'after many deadlocks, and gives each the answer that is true',
    () =>
      runRounds(ROUNDS, async (random) => {
        await using round = await startRound(cluster.url, random)
        await disturb('40P01', round, lockInOtherOrder)
      }),
    ROUNDS_TIMEOUT_MS,
  )

  test(
    'after many serialization failures, and gives each the answer that is true',
    () =>
      runRounds(ROUNDS, async (random) => {
        await using round = await startRound(cluster.url, random, {
          statement: (database) => `alter database ${database} set default_transaction_isolation = 'serializable'`,
        })
        await disturb('40001', round, updateWriters)
      }),
    ROUNDS_TIMEOUT_MS,
  )
})

/** Lets another client conflict with the service until the server has aborted enough statements of the service. */
async function disturb(
  state: keyof typeof aborted,
  round: Round,
  conflict: (sql: SQL, nextId: number) => Promise<unknown>,
): Promise<void> {
  const before = countAborted(state)
  const latestIds = () => round.history.writes().slice(-AHEAD)
  await administer(round.database.url, (sql) =>
    until('statements were aborted', async () => {
      await conflict(sql, Math.max(...latestIds().map(({ id }) => id))).catch(ignoreConflict)
      return countAborted(state) - before >= ABORTS
    }),
  )
  aborted[state] += countAborted(state) - before
  await round.untilStoring()
  await round.check([BUSY_REFUSAL])
  expect(round.history.errors()).toBeLessThan(round.history.counts().acknowledged * REFUSED_MAX)
}

/** The errors with this SQLSTATE that the service got, by the log of the database. */
const countAborted = (state: string): number =>
  readFileSync(join(cluster.data, 'log'), 'latin1').split(`${state} plantstore: ERROR`).length - 1

/** Stores plants of the next groups, then waits for the row that a group has locked. At the end it takes all back. */
const lockInOtherOrder = (sql: SQL, nextId: number): Promise<unknown> =>
  sql.begin(async (inside) => {
    // The service looks for deadlocks sooner than this client, so that the service is the one that is aborted.
    await inside.unsafe("set local deadlock_timeout = '1s'")
    await inside`
      insert into plantstore.plants (user_id, id, name)
      select users.id, ${nextId}::int8 + ahead, 'not ours' from plantstore.users, generate_series(1, ${AHEAD}) as ahead
      on conflict do nothing`
    await inside`select pg_sleep(0.01)`
    await inside`select 1 from plantstore.writers for update`
    throw new Rollback()
  })

/** Updates the rows of the writers without a change, while groups are under way. */
const updateWriters = (sql: SQL): Promise<unknown> => sql`update plantstore.writers set opened_at_ms = opened_at_ms`

class Rollback extends Error {}

/** The server may abort the other client instead. */
function ignoreConflict(error: unknown): void {
  const isConflict = error instanceof SQL.PostgresError && ['40P01', '40001'].includes(String(error.errno))
  if (!isConflict && !(error instanceof Rollback)) throw error
}
