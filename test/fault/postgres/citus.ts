import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { openStore } from '../../../src/store/open.ts'
import { administer, urlOf } from '../../support/postgres.ts'
import { startCluster } from '../../support/postgres-cluster.ts'
import { POSTGRES_PROGRAMS } from '../../support/postgres-system.ts'
import type { Requirement } from '../../support/requirement.ts'

/** CONTRIBUTING.md says how to build it. */
export const CITUS: Requirement = {
  missing:
    'Citus is missing: PLANTSTORE_TEST_POSTGRES_BIN does not name the programs of a PostgreSQL server that has it',
  isMet: () => POSTGRES_PROGRAMS !== undefined && existsSync(join(POSTGRES_PROGRAMS, '../lib/citus.so')),
}

const SETTINGS = {
  shared_preload_libraries: 'citus',
  'citus.node_conninfo': 'sslmode=disable',
  'citus.recover_2pc_interval': '1s',
  max_connections: '300',
}
const HOST = '127.0.0.1'

/** As docs/explanation/tested.md says. The other tables stay on the coordinator. */
const DISTRIBUTE = [
  `select create_reference_table('plantstore.users')`,
  `select create_distributed_table('plantstore.plants', 'user_id')`,
]

/** Starts a coordinator with two empty stores, and the workers that hold their plants. A test may need both stores at once. */
export async function startCitus() {
  using stack = new DisposableStack()
  const start = async () => stack.use(await startCluster(SETTINGS))
  const [coordinator, ...workers] = [await start(), await start(), await start()]
  const urls: string[] = []
  for (const name of ['one', 'two']) {
    for (const { url } of [coordinator, ...workers]) {
      await query(url, `create database ${name}`)
      await query(urlOf(url, name), 'create extension citus')
    }
    const url = urlOf(coordinator.url, name)
    await query(url, `select citus_set_coordinator_host('${HOST}', ${coordinator.port})`)
    for (const { port } of workers) await query(url, `select citus_add_node('${HOST}', ${port})`)
    await (await openStore(url, () => {})).close()
    for (const statement of DISTRIBUTE) await query(url, statement)
    urls.push(url)
  }
  const started = stack.move()

  return {
    urls,
    coordinator,
    workers,
    /** Whether no worker has a transaction that Citus must still commit or roll back. */
    async hasNothingPrepared() {
      const found = await Promise.all(workers.map((each) => query(each.url, 'select 1 from pg_prepared_xacts')))
      return found.flat().length === 0
    },
    /** What the coordinator has logged of transactions that were ended because of a deadlock. */
    deadlocks: () => readFileSync(join(coordinator.data, 'log'), 'utf8').match(/^.*ERROR: .*deadlock.*$/gm) ?? [],
    [Symbol.dispose]: () => started.dispose(),
  }
}

const query = (url: string, statement: string): Promise<unknown[][]> =>
  administer(url, (sql) => sql.unsafe(statement).values())
