import { SQL } from 'bun'
import { openStore } from '../../src/store/open.ts'
import { APPLICATION_NAME } from '../../src/store/postgres/driver.ts'
import { type Cluster, startCluster } from './postgres-cluster.ts'
import { OWN_POSTGRES } from './postgres-system.ts'
import type { Requirement } from './requirement.ts'
import { until } from './until.ts'

/** The URL of a server for the databases of tests. The user names it, or with-postgres.ts starts it. */
const given = process.env.TEST_POSTGRES ?? process.env.PLANTSTORE_TEST_POSTGRES
/** The names of databases begin with it. with-postgres.ts gives each run its own, and drops the databases that are left. */
const PREFIX = process.env.TEST_DATABASES ?? 'test'

/** A server on which tests can make databases. */
export const POSTGRES_SERVER: Requirement = given === undefined ? OWN_POSTGRES : { missing: '', isMet: () => true }

let shared: Promise<Cluster> | undefined

/** The URL of the server that all tests of a run share. This process starts one if nobody else has. */
export async function serverUrl(): Promise<string> {
  if (given !== undefined) return given
  shared ??= startCluster()
  return (await shared).url
}

let template: Promise<string> | undefined

/** Makes a database, by default on the shared server. With `isEmpty` it has no schema of ours. */
export async function makeDatabase({ isEmpty = false, settings = '', server = undefined as string | undefined } = {}) {
  const url = server ?? (await serverUrl())
  const name = newName()
  if (!isEmpty && server === undefined) template ??= makeTemplate(url)
  const from = isEmpty || server !== undefined ? 'template0' : await template
  await runScript(url, `create database ${name} template ${from} ${settings}`)
  return {
    name,
    url: urlOf(url, name),
    server: url,
    async [Symbol.asyncDispose]() {
      await runScript(url, `drop database ${name} with (force)`)
    },
  }
}

const newName = () => `${PREFIX}_${crypto.randomUUID().replaceAll('-', '')}`

/** A database with the schema. To copy it is faster than to migrate each database. */
async function makeTemplate(url: string): Promise<string> {
  const name = newName()
  await runScript(url, `create database ${name} template template0`)
  await (await openStore(urlOf(url, name), () => {})).close()
  return name
}

/** Drops all databases whose names begin with the prefix. */
export const dropDatabases = (url: string, prefix: string): Promise<void> =>
  administer(url, async (sql) => {
    const names = await sql.unsafe('select datname from pg_database where starts_with(datname, $1)', [prefix]).values()
    for (const [name] of names) await sql.unsafe(`drop database ${name} with (force)`).simple()
  })

/** The URLs of databases that tests of this process no longer use. */
const free: string[] = []

/** Lends an empty database with the schema on the shared server. To empty it for the next test is faster than to make one. */
export async function borrowDatabase() {
  const url = free.pop() ?? (await makeDatabase()).url
  return {
    url,
    async [Symbol.asyncDispose]() {
      await runScript(url, EMPTY)
      free.push(url)
    },
  }
}

/** Ends all other connections, and deletes all rows except those of the migrations. */
const EMPTY = `
  select pg_catalog.pg_terminate_backend(pid)
    from pg_catalog.pg_stat_activity where datname = current_database() and pid <> pg_catalog.pg_backend_pid();
  truncate plantstore.users, plantstore.tokens, plantstore.plants, plantstore.writers;
  update plantstore.counters set last_user_id = 0, last_token_id = 0, tokens_stamp = 0`

/** The URL of another database of a server. */
export const urlOf = (url: string, database: string): string => url.replace(/\/[^/?]*(\?.*)?$/, `/${database}$1`)

/** Works on a database beside the store. */
export async function administer<T>(url: string, work: (sql: SQL) => Promise<T>): Promise<T> {
  const { username, password, hostname, port, pathname } = new URL(url)
  const host = decodeURIComponent(hostname)
  const sql = new SQL({
    url: 'postgres://localhost/',
    adapter: 'postgres',
    ...(host.startsWith('/') ? { path: `${host}/.s.PGSQL.${port}` } : { hostname: host, port: Number(port || 5432) }),
    username: decodeURIComponent(username),
    password: decodeURIComponent(password),
    database: pathname.slice(1),
    bigint: true,
    max: 1,
  })
  try {
    return await work(sql)
  } finally {
    await sql.close()
  }
}

/** Runs statements on a database beside the store. */
export const runScript = (url: string, script: string): Promise<void> =>
  administer(url, async (sql) => void (await sql.unsafe(script).simple()))

/** Runs a statement in a transaction that lasts until it commits by `release`. */
export async function runUncommitted(url: string, statement: string) {
  const done = Promise.withResolvers<void>()
  const released = Promise.withResolvers<void>()
  const running = administer(url, (sql) =>
    sql.begin(async (transaction) => {
      await transaction.unsafe(statement)
      done.resolve()
      await released.promise
    }),
  )
  await Promise.race([done.promise, running])
  return {
    async release() {
      released.resolve()
      await running
    },
  }
}

/** Locks tables until `release`. Resolves when it has the lock. */
export const lockTables = (url: string, tables: string, mode = 'access exclusive') =>
  runUncommitted(url, `lock table ${tables} in ${mode} mode`)

const SELECT_WAITING = `select count(*) from pg_catalog.pg_stat_activity
  where datname = current_database() and application_name = '${APPLICATION_NAME}' and wait_event_type = 'Lock'`

/** Waits until so many statements of stores wait for a lock. */
export const untilWaiting = (url: string, count: number): Promise<void> =>
  administer(url, async (sql) => {
    const waiting = async () => Number((await sql.unsafe(SELECT_WAITING).values())[0]?.[0])
    await until(`${count} statements wait`, async (see) => see(await waiting()) >= count)
  })
