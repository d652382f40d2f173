import { appendFileSync, chmodSync, existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { run } from './disk.ts'
import { MEMORY, makeFolder } from './folder.ts'
import { AS_SERVER, endWithThisProcess, freePort, ownedByServer, POSTGRES_PROGRAMS } from './postgres-system.ts'

const OWNER = 'plantstore'
/** The only role that needs a password. test/cli creates it. */
export const GUARDED = { user: 'guarded', password: 'Sesame-99' }
const HBA = `local all all trust
local replication all trust
host all ${GUARDED.user} 127.0.0.1/32 scram-sha-256
host all all 127.0.0.1/32 trust
`

/** Settings of a server, as in its configuration. */
export type Settings = Readonly<Record<string, string>>

export interface ClusterOptions {
  /** The folder in which the cluster makes its own; in memory if left out. */
  readonly parent?: string | undefined
  /** More options of `initdb`. */
  readonly initFlags?: readonly string[]
  /** Makes this server a standby of another one, under a name. */
  readonly standby?: {
    readonly of: Pick<Cluster, 'sockets' | 'port' | 'data' | 'start' | 'stop'>
    readonly name: string
  }
}

/** A PostgreSQL server of one test. */
export type Cluster = Awaited<ReturnType<typeof startCluster>>

/** Starts a server in a new folder. It listens on a unix socket there, and on a port of 127.0.0.1. */
export async function startCluster(settings: Settings = {}, options: ClusterOptions = {}) {
  const folder = makeFolder(options.parent ?? MEMORY)
  const data = makeServerFolder(folder.path, 'data')
  const sockets = makeServerFolder(folder.path, 's')
  const port = freePort()
  const flags = flagsOf({
    unix_socket_directories: sockets,
    listen_addresses: '127.0.0.1',
    port: String(port),
    // With this setting the shared memory is in the folder, and goes with it.
    dynamic_shared_memory_type: 'mmap',
    ...settings,
  })
  const control = (...args: readonly string[]) =>
    runProgram('pg_ctl', '-s', '-w', '-D', data, '-l', join(data, 'log'), ...args)
  const start = () => control('-o', flags, 'start')
  const stop = (mode: 'fast' | 'immediate' = 'immediate') => control('-m', mode, 'stop')
  const isRunning = () => existsSync(join(data, 'postmaster.pid'))
  endWithThisProcess(commandOf('pg_ctl', '-s', '-D', data, '-m', 'immediate', 'stop'), folder.path)
  try {
    createData(data, options)
    start()
  } catch (error) {
    folder[Symbol.dispose]()
    throw error
  }
  return {
    /** The URL of the first database, through the unix socket. */
    url: `postgres://${OWNER}@${encodeURIComponent(sockets)}:${port}/postgres`,
    port,
    sockets,
    socket: join(sockets, `.s.PGSQL.${port}`),
    data,
    start,
    stop,
    /** Makes a standby the primary. Returns when it can be written. */
    promote: () => control('promote'),
    /** Whether the server runs. It may still be recovering. */
    isRunning,
    /** Whether the server takes connections. */
    answers: () => Bun.spawnSync(['pg_isready', '-h', sockets, '-p', String(port)]).exitCode === 0,
    [Symbol.dispose]() {
      // The test may have stopped the server.
      if (isRunning()) stop()
      folder[Symbol.dispose]()
    },
  }
}

function commandOf(name: string, ...args: readonly string[]): string[] {
  if (POSTGRES_PROGRAMS === undefined) throw new Error('the programs of postgresql are missing')
  return [...AS_SERVER, join(POSTGRES_PROGRAMS, name), ...args]
}

const runProgram = (name: string, ...args: readonly string[]) => run(commandOf(name, ...args))

const flagsOf = (settings: Settings): string =>
  Object.entries(settings)
    .map(([name, value]) => `-c ${name}='${value}'`)
    .join(' ')

/** Makes a folder of the user of the server, who may enter the one above. */
export function makeServerFolder(parent: string, name: string): string {
  const path = join(parent, name)
  chmodSync(parent, 0o755)
  mkdirSync(path, { mode: 0o700 })
  ownedByServer(path)
  return path
}

const initialize = (data: string, flags: readonly string[] = []) =>
  runProgram('initdb', '-D', data, '-U', OWNER, '-E', 'UTF8', '--locale=C', '--no-sync', '--auth=trust', ...flags)

const copyData = (from: string, to: string) => run(['cp', '-a', `${from}/.`, to])

let template: string | undefined

/** The data of a server that never starts. To copy them takes a small part of the time of `initdb`. with-postgres.ts shares its own. */
export function templateData(): string {
  template ??= process.env.TEST_POSTGRES_DATA ?? makeTemplate()
  return template
}

function makeTemplate(): string {
  const folder = makeFolder()
  endWithThisProcess(['true'], folder.path)
  const data = makeServerFolder(folder.path, 'data')
  initialize(data)
  return data
}

/** Creates the data of a new server, or copies those of the stopped primary (https://www.postgresql.org/docs/current/warm-standby.html). */
function createData(data: string, { initFlags, standby }: ClusterOptions): void {
  if (initFlags !== undefined) initialize(data, initFlags)
  else if (standby === undefined) {
    copyData(templateData(), data)
  } else {
    const { of, name } = standby
    of.stop('fast')
    copyData(of.data, data)
    of.start()
    const source = `host=${of.sockets} port=${of.port} user=${OWNER} application_name=${name}`
    appendFileSync(join(data, 'postgresql.auto.conf'), `primary_conninfo = '${source}'\n`)
    writeFileSync(join(data, 'standby.signal'), '')
  }
  writeFileSync(join(data, 'pg_hba.conf'), HBA)
}
