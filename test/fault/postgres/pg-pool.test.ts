import { afterAll, beforeAll, describe, test } from 'bun:test'
import { SQL } from 'bun'
import { administer, type Cluster, OWN_POSTGRES, socketOf, startCluster } from '../../support/postgres.ts'
import { lacks } from '../../support/requirement.ts'
import { IS_LONG, ROUNDS_TIMEOUT_MS, rounds, runRounds } from '../rounds.ts'
import { BUSY, setScene, UNREACHABLE } from './scene.ts'

const CONNECTIONS_MAX = 40

let cluster: Cluster
const tookMs: number[] = []

describe.skipIf(!IS_LONG || lacks(OWN_POSTGRES))('a database server whose connections are taken by others', () => {
  beforeAll(async () => {
    cluster = await startCluster({ max_connections: String(CONNECTIONS_MAX), superuser_reserved_connections: '0' })
  })
  afterAll(() => {
    cluster[Symbol.dispose]()
    console.log(`longest time to the first write: ${Math.round(Math.max(...tookMs))} ms of ${tookMs.length}`)
  })

  test(
    'has 503 answered until there are some, and nothing acknowledged is missing',
    () =>
      runRounds(rounds(1, 20), async (random) => {
        await using scene = await setScene(cluster.url, random)
        {
          await using _others = await takeAll(scene.service.pid)
          await scene.untilRefusing()
        }
        tookMs.push(await scene.untilStoring())
        await scene.check([UNREACHABLE, BUSY])
      }),
    ROUNDS_TIMEOUT_MS,
  )
})

/** Ends the connections of a service, and takes all that there are before it can have new ones. */
async function takeAll(pid: number) {
  const others: SQL[] = []
  process.kill(pid, 'SIGSTOP')
  try {
    await administer(cluster.url, async (sql) => {
      await sql`select pg_terminate_backend(pid, 5000) from pg_stat_activity where application_name = 'plantstore'`
      while (await takeOne(others));
    })
    // The one that has ended the others.
    while (await takeOne(others));
  } finally {
    process.kill(pid, 'SIGCONT')
  }
  return {
    async [Symbol.asyncDispose]() {
      await Promise.all(others.map((sql) => sql.close()))
    },
  }
}

/** Whether there was one more connection. */
async function takeOne(others: SQL[]): Promise<boolean> {
  const sql = new SQL({
    url: 'postgres://localhost/',
    adapter: 'postgres',
    path: socketOf(cluster),
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
