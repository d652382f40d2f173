import { chmodSync, chownSync, existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { SQL } from 'bun'
import { openStore } from '../../src/store/open.ts'
import { APPLICATION_NAME } from '../../src/store/postgres/connection.ts'
import { run } from './disk.ts'
import { makeFolder } from './folder.ts'
import type { Requirement } from './requirement.ts'

/** Where Debian puts the programs of each version. */
const VERSIONS = '/usr/lib/postgresql'
/** In memory where the system has that: then a database is made in a tenth of the time. */
const FOLDER = existsSync('/dev/shm') ? '/dev/shm' : undefined
/** The server refuses to run as root. */
const NOBODY = 65534
const OWNER = 'plantstore'

/** Settings of a server, as its configuration has them. */
export type Settings = Readonly<Record<string, string>>

/** The URL of a server on which databases can be made: whoever runs the tests names one, or with-postgres.ts starts one. */
const given = process.env.TEST_POSTGRES ?? process.env.PLANTSTORE_TEST_POSTGRES
/** What the names of databases begin with. A run of all tests has one of its own, by which with-postgres.ts finds what is left of it. */
const PREFIX = process.env.TEST_DATABASES ?? 'test'
const BIN = findPrograms()
/** The folder of the programs of a server, where there are such. */
export const POSTGRES_PROGRAMS = BIN

/** A server on which tests can make databases. */
export const POSTGRES_SERVER: Requirement = {
  missing: 'the programs of postgresql are missing',
  isMet: () => given !== undefined || BIN !== undefined,
}

/** The programs with which a test starts a server of its own. */
export const OWN_POSTGRES: Requirement = {
  missing: 'the programs of postgresql are missing',
  isMet: () => BIN !== undefined,
}

interface ClusterPlace {
  /** The folder in which it makes its own. */
  readonly parent?: string | undefined
  /** More options of `initdb`. */
  readonly initFlags?: readonly string[]
  /** The server whose standby it is, as one of this name. */
  readonly standby?: { readonly of: Pick<Cluster, 'sockets' | 'port'>; readonly name: string }
}

/** What a server is that is started for a test. */
export type Cluster = Awaited<ReturnType<typeof startCluster>>

/** Who gets in: whoever comes, but for the role that shows a password. */
const ENTRY = `local all all trust
local replication all trust
host all guarded 127.0.0.1/32 scram-sha-256
host all all 127.0.0.1/32 trust
`
/** That role's password, which no test may find anywhere but where it put it. */
export const GUARDED = { user: 'guarded', password: 'Sesame-99' }

/**
 * Starts a server of its own in a folder of its own, in memory unless another parent is named: at a unix socket there, and at
 * a port on the loopback. Rejects with what it says if it does not start.
 */
export async function startCluster(settings: Settings = {}, place: ClusterPlace = {}) {
  const { parent = FOLDER, initFlags = [], standby } = place
  if (BIN === undefined) throw new Error('the programs of postgresql are missing')
  const folder = makeFolder(parent)
  const data = join(folder.path, 'data')
  endWithThisProcess([...AS_SERVER, join(BIN, 'pg_ctl'), '-s', '-D', data, '-m', 'immediate', 'stop'], folder.path)
  const port = freePort()
  chmodSync(folder.path, 0o755)
  mkdirSync(data, { mode: 0o700 })
  ownedByServer(data)
  const sockets = join(folder.path, 's')
  mkdirSync(sockets)
  ownedByServer(sockets)
  const all = {
    unix_socket_directories: sockets,
    listen_addresses: '127.0.0.1',
    port: String(port),
    // In the folder, so that it is gone with it.
    dynamic_shared_memory_type: 'mmap',
    ...settings,
  }
  const options = Object.entries(all).map(([name, value]) => `-c ${name}='${value}'`)
  const control = (...args: readonly string[]) =>
    run([...AS_SERVER, join(BIN, 'pg_ctl'), '-s', '-w', '-D', data, '-l', join(data, 'log'), ...args])
  const start = () => control('-o', options.join(' '), 'start')
  const stop = (mode: 'fast' | 'immediate' = 'immediate') => control('-m', mode, 'stop')
  const isRunning = () => existsSync(join(data, 'postmaster.pid'))
  const answers = () => Bun.spawnSync([join(BIN, 'pg_isready'), '-h', sockets, '-p', String(port)]).exitCode === 0
  const dispose = () => folder[Symbol.dispose]()
  try {
    const making =
      standby === undefined
        ? ['initdb', '-U', OWNER, '-E', 'UTF8', '--locale=C', '--no-sync', '--auth=trust', ...initFlags]
        : ['pg_basebackup', '-R', '-c', 'fast', '--no-sync', '-d', connectionOf(standby)]
    const [program = '', ...flags] = making
    run([...AS_SERVER, join(BIN, program), '-D', data, ...flags])
    writeFileSync(join(data, 'pg_hba.conf'), ENTRY)
    start()
  } catch (error) {
    dispose()
    throw error
  }
  return {
    /** The URL of its first database, by the socket. */
    url: `postgres://${OWNER}@${encodeURIComponent(sockets)}:${port}/postgres`,
    /** Makes the role that shows a password, with a database of its own. Returns that database's URL, by the port. */
    async makeGuarded(): Promise<string> {
      const { user, password } = GUARDED
      await administer(this.url, async (sql) => {
        await sql.unsafe(`create role ${user} login password '${password}'`).simple()
        await sql.unsafe(`create database ${user} owner ${user}`).simple()
      })
      return `postgres://${user}:${password}@127.0.0.1:${port}/${user}`
    },
    port,
    sockets,
    data,
    start,
    stop,
    /** Makes a standby the primary. Returns when it can be written. */
    promote: () => control('promote'),
    /** Whether there is a server, be it one that is about to recover. */
    isRunning,
    /** Whether it takes connections. */
    answers,
    [Symbol.dispose]() {
      // It may have been stopped by the test.
      if (isRunning()) stop()
      dispose()
    },
  }
}

/** The unix socket at which a server listens. */
export const socketOf = ({ sockets, port }: Pick<Cluster, 'sockets' | 'port'>): string =>
  join(sockets, `.s.PGSQL.${port}`)

let shared: Cluster | undefined

/** The URL of the server that all tests of a run share. Where nobody has started one, it is started for this process. */
export async function serverUrl(): Promise<string> {
  if (given !== undefined) return given
  shared ??= await startCluster()
  return shared.url
}

let template: Promise<string> | undefined

/** Makes a database. Returns its URL, by default on the shared server; with `isEmpty` it has no schema of ours. */
export async function makeDatabase({ isEmpty = false, settings = '', server = undefined as string | undefined } = {}) {
  const url = server ?? (await serverUrl())
  const name = anyName()
  if (!isEmpty && server === undefined) template ??= makeTemplate(url)
  const from = isEmpty || server !== undefined ? 'template0' : await template
  await administer(url, (sql) => sql.unsafe(`create database ${name} template ${from} ${settings}`).simple())
  return {
    name,
    url: urlOf(url, name),
    server: url,
    async [Symbol.asyncDispose]() {
      await administer(url, (sql) => sql.unsafe(`drop database ${name} with (force)`).simple())
    },
  }
}

const anyName = () => `${PREFIX}_${crypto.randomUUID().replaceAll('-', '')}`

/** Drops all databases whose names begin so. */
export const dropDatabases = (url: string, prefix: string): Promise<void> =>
  administer(url, async (sql) => {
    const names = await sql.unsafe('select datname from pg_database where starts_with(datname, $1)', [prefix]).values()
    for (const [name] of names) await sql.unsafe(`drop database ${name} with (force)`).simple()
  })

/** Databases of this process that tests are done with, by their URLs. */
const free: string[] = []

/** An empty database with the schema, on the shared server. After its use it is emptied for the next, which takes less than to make one. */
export async function borrowDatabase() {
  const url = free.pop() ?? (await makeDatabase()).url
  return {
    url,
    async [Symbol.asyncDispose]() {
      await administer(url, (sql) => sql.unsafe(EMPTY).simple())
      free.push(url)
    },
  }
}

/** Ends whoever is connected, and leaves what the first start has made. */
const EMPTY = `
  select pg_catalog.pg_terminate_backend(pid)
    from pg_catalog.pg_stat_activity where datname = current_database() and pid <> pg_catalog.pg_backend_pid();
  truncate plantstore.users, plantstore.tokens, plantstore.plants, plantstore.writers;
  update plantstore.counters set last_user_id = 0, last_token_id = 0, tokens_stamp = 0`

/** A database that has the schema already, to be copied: that is faster than making it each time. */
async function makeTemplate(url: string): Promise<string> {
  const name = anyName()
  await administer(url, (sql) => sql.unsafe(`create database ${name} template template0`).simple())
  await (await openStore(urlOf(url, name), () => {})).close()
  return name
}

/** The URL of another database of a server. */
export const urlOf = (url: string, database: string): string => url.replace(/\/[^/?]*(\?.*)?$/, `/${database}$1`)

/** Does something with a database, beside the store. */
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

/** Keeps everything else from tables until it is released. Resolves when it has the lock. */
export async function lockTables(url: string, tables: string) {
  const locked = Promise.withResolvers<void>()
  const released = Promise.withResolvers<void>()
  const locking = administer(url, (sql) =>
    sql.begin(async (transaction) => {
      await transaction.unsafe(`lock table ${tables} in access exclusive mode`)
      locked.resolve()
      await released.promise
    }),
  )
  await Promise.race([locked.promise, locking])
  return {
    async release() {
      released.resolve()
      await locking
    },
  }
}

/** Waits until so many statements of stores wait for a lock that somebody else has. */
export const untilWaiting = (url: string, count: number): Promise<void> =>
  administer(url, async (sql) => {
    const waiting = async () =>
      Number(
        (
          await sql
            .unsafe(
              `select count(*) from pg_catalog.pg_stat_activity
               where datname = current_database() and application_name = '${APPLICATION_NAME}' and wait_event_type = 'Lock'`,
            )
            .values()
        )[0]?.[0],
      )
    while ((await waiting()) < count) await Bun.sleep(5)
  })

/** How a standby gets what its primary writes (https://www.postgresql.org/docs/current/libpq-connect.html). */
const connectionOf = ({ of, name }: NonNullable<ClusterPlace['standby']>): string =>
  `host=${of.sockets} port=${of.port} user=${OWNER} application_name=${name}`

/** What runs a command as the server's user, who is not root. */
export const AS_SERVER: readonly string[] =
  process.getuid?.() === 0 ? ['setpriv', `--reuid=${NOBODY}`, `--regid=${NOBODY}`, '--clear-groups'] : []

/** Gives a file or folder to the server's user. */
export function ownedByServer(path: string): void {
  if (process.getuid?.() === 0) chownSync(path, NOBODY, NOBODY)
}

function findPrograms(): string | undefined {
  const versions = existsSync(VERSIONS) ? readdirSync(VERSIONS).sort((a, b) => Number(b) - Number(a)) : []
  const folders = versions.map((version) => join(VERSIONS, version, 'bin'))
  return folders.find((folder) => ['initdb', 'pg_ctl', 'postgres'].every((name) => existsSync(join(folder, name))))
}

/** However this process ends: then a shell, which only reads what never comes, ends the server and removes its folder. */
export function endWithThisProcess(stop: readonly string[], folder: string): void {
  const script = `trap '' INT TERM; read _; folder=$1; shift; [ -e "$folder" ] && "$@" 2>/dev/null; rm -rf "$folder"`
  // By itself, so that no signal to a group of processes ends it.
  Bun.spawn(['/bin/sh', '-c', script, 'sh', folder, ...stop], {
    stdio: ['pipe', 'ignore', 'ignore'],
    detached: true,
  }).unref()
}

/** A port that nobody listens at now. */
export function freePort(): number {
  const listener = Bun.listen({ hostname: '127.0.0.1', port: 0, socket: { data() {} } })
  const { port } = listener
  listener.stop(true)
  return port
}
