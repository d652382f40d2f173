import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { SQL } from 'bun'
import { administer, type Cluster, OWN_POSTGRES, startCluster } from '../../support/postgres.ts'
import { lacks } from '../../support/requirement.ts'
import { IS_LONG, ROUNDS_TIMEOUT_MS, rounds, runRounds } from '../rounds.ts'
import { until } from '../watch.ts'
import { BUSY, type Scene, setScene } from './scene.ts'

/** Aborted statements of the service that make a sendRequests. */
const ABORTS = rounds(10, 30)
/** The part of writes that may be refused on a busy machine: all others are repeated until they succeed. */
const REFUSED_MAX = 0.01
/** Ids that nobody has used yet, of which another client stores plants that it takes back: those of the next groups. */
const AHEAD = 300
/** The other client waits for longer than the service does until it looks for a deadlock, so that it is not the victim. */
const PATIENT = "set local deadlock_timeout = '1s'"

let cluster: Cluster
const aborted = { '40P01': 0, '40001': 0 }

describe.skipIf(!IS_LONG || lacks(OWN_POSTGRES))('transactions of others that are in the way', () => {
  beforeAll(async () => {
    // With the SQLSTATE of each error, and who was told it.
    cluster = await startCluster({ deadlock_timeout: '100ms', log_line_prefix: '%e %a: ' })
  })
  afterAll(() => {
    cluster[Symbol.dispose]()
    console.log(`aborted statements of the service: ${JSON.stringify(aborted)}`)
  })

  test(
    'a sendRequests of deadlocks: writes are repeated, and each has the answer that is true',
    () =>
      runRounds(rounds(1, 20), async (random) => {
        await using scene = await setScene(cluster.url, random)
        await sendRequests('40P01', scene, lockInOtherOrder)
      }),
    ROUNDS_TIMEOUT_MS,
  )

  test(
    'a sendRequests of failures to serialize: writes are repeated, and each has the answer that is true',
    () =>
      runRounds(rounds(1, 20), async (random) => {
        await using scene = await setScene(cluster.url, random, {
          statement: (database) => `alter database ${database} set default_transaction_isolation = 'serializable'`,
        })
        await sendRequests('40001', scene, changeWhatIsRead)
      }),
    ROUNDS_TIMEOUT_MS,
  )
})

/** Has another client be in the way again and again, until the service was told so often enough. */
async function sendRequests(
  state: keyof typeof aborted,
  scene: Scene,
  beInTheWay: (sql: SQL, nextId: number) => Promise<void>,
) {
  const before = countAborted(state)
  const nextId = () =>
    Math.max(
      ...scene.history
        .writes()
        .slice(-AHEAD)
        .map(({ id }) => id),
    )
  await administer(scene.database.url, (sql) =>
    until('there was a sendRequests', async () => {
      await beInTheWay(sql, nextId())
      return countAborted(state) - before >= ABORTS
    }),
  )
  aborted[state] += countAborted(state) - before
  await scene.untilStoring()
  await scene.check([BUSY])
  expect(scene.answers.refused()).toBeLessThan(scene.answers.successes() * REFUSED_MAX)
}

/** Errors of one sort that the service was told, by the log of the database. */
const countAborted = (state: string): number =>
  readFileSync(join(cluster.data, 'log'), 'latin1').split(`${state} plantstore: ERROR`).length - 1

/** Stores plants of the next groups, then wants what a group has locked: neither can go on. Then takes all back. */
const lockInOtherOrder = (sql: SQL, nextId: number): Promise<void> =>
  sql
    .begin(async (inside) => {
      await inside.unsafe(PATIENT)
      await inside`
        insert into plantstore.plants (user_id, id, name)
        select users.id, ${nextId}::int8 + place, 'not ours' from plantstore.users, generate_series(1, ${AHEAD}) as place
        on conflict do nothing`
      await inside`select pg_sleep(0.01)`
      await inside`select 1 from plantstore.writers for update`
      throw new TakenBack()
    })
    .catch(passOver)

/** Changes the rows of the writers, as they were, while groups are under way. */
const changeWhatIsRead = async (sql: SQL): Promise<void> => {
  await sql`update plantstore.writers set opened_at_ms = opened_at_ms`.catch(passOver)
}

class TakenBack extends Error {}

/** The other client may be the one that is aborted. */
function passOver(error: unknown): void {
  const state = error instanceof Error && 'errno' in error ? error.errno : undefined
  if (!(error instanceof TakenBack) && state !== '40P01' && state !== '40001') throw error
}
