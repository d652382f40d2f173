import { expect } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { SQL } from 'bun'
import { administer } from '../../support/postgres.ts'
import { startCluster } from '../../support/postgres-cluster.ts'
import { OWN_POSTGRES } from '../../support/postgres-system.ts'
import { until } from '../../support/until.ts'
import { BUSY_REFUSAL } from '../history.ts'
import { testRounds } from '../rounds.ts'
import { startRound } from './round.ts'

/** Statements of the service that the server aborts in a round. */
const ABORTS = 30
/** The part of writes that may be refused on a busy machine. The service repeats all others until they succeed. */
const REFUSED_MAX = 0.01
/** Plants that another client stores and takes back, with the ids of the service's next groups. */
const AHEAD = 300

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

/** How another client conflicts with the service, and with which SQLSTATE the server aborts statements of the service then. */
const CONFLICTS = [
  { name: 'deadlocks', state: '40P01', isolation: 'read committed', conflict: lockInOtherOrder },
  { name: 'serialization failures', state: '40001', isolation: 'serializable', conflict: updateWriters },
]

for (const { name, state, isolation, conflict } of CONFLICTS) {
  testRounds(
    `a service repeats writes after many ${name} until they succeed, and gives each the answer that is true`,
    { short: 0, long: 20, needs: [OWN_POSTGRES] },
    async (random) => {
      using cluster = await startCluster({
        deadlock_timeout: '100ms',
        default_transaction_isolation: isolation,
        // The log shows the SQLSTATE of each error, and which program got it.
        log_line_prefix: '%e %a: ',
      })
      await using round = await startRound(cluster.url, random)
      const countAborted = () =>
        readFileSync(join(cluster.data, 'log'), 'latin1').split(`${state} plantstore: ERROR`).length - 1
      await administer(cluster.url, (sql) =>
        until('statements were aborted', async () => {
          const latest = round.history.writes().slice(-AHEAD)
          await conflict(sql, Math.max(...latest.map(({ id }) => id))).catch(ignoreConflict)
          return countAborted() >= ABORTS
        }),
      )
      await round.untilStoring()
      await round.check([BUSY_REFUSAL])
      expect(round.history.errors()).toBeLessThan(round.history.counts().acknowledged * REFUSED_MAX)
    },
  )
}
