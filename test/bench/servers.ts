import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { freePort } from '../support/postgres-system.ts'
import { until } from '../support/until.ts'
import { PROJECT, SERVER_CORE, type Workspace } from './workspace.ts'

/** The executable of this working copy, which `bun run bench` builds. */
const EXECUTABLE = join(PROJECT, 'dist/plantstore')

/** Delays each sync by 5 ms (https://man7.org/linux/man-pages/man1/strace.1.html, "Tampering"). */
const SLOW_SYNCS = [
  ...['strace', '-D', '-f', '--seccomp-bpf', '-o', '/dev/null', '-e', 'trace=fsync,fdatasync'],
  ...['-e', 'inject=fsync,fdatasync:delay_exit=5000'],
]

const START_TIMEOUT_MS = 20_000
const STOP_TIMEOUT_MS = 20_000
/** The unit of times in /proc. `getconf CLK_TCK` prints 100 on all current Linux systems. */
const TICKS_PER_SECOND = 100

/** A server on the server core. */
export interface Server {
  readonly name: string
  readonly pid: number
  readonly port: number
  readonly url: string
  /** The CPU time of all its threads so far. */
  cpuMs(): number
  stop(): Promise<void>
}

interface PlantstoreOptions {
  /** Whether the server runs under strace, which delays each sync by 5 ms. */
  readonly hasSlowSyncs?: boolean
  /** Whether the server also serves metrics on a second port. */
  readonly hasMetrics?: boolean
  /** The path of the executable, by default `EXECUTABLE`. */
  readonly executable?: string
  /** The cores for the server, by default `SERVER_CORE`. */
  readonly cores?: string
  /** How many threads answer, by default one: as many as the cores of `SERVER_CORE`. */
  readonly threads?: number
}

/** Starts the service on a database with default options, except that it logs errors only. */
export async function startPlantstore(workspace: Workspace, database: string, options: PlantstoreOptions = {}) {
  const server = spawnPlantstore(workspace, database, options)
  await untilOk(server, '/readyz', 5)
  return server
}

/** Spawns the service and does not wait until it listens. */
export function spawnPlantstore(
  workspace: Workspace,
  database: string,
  {
    hasSlowSyncs = false,
    hasMetrics = false,
    executable = EXECUTABLE,
    cores = String(SERVER_CORE),
    threads = 1,
  }: PlantstoreOptions = {},
): Server {
  const port = freePort()
  const metrics = hasMetrics ? ['--metrics-listen', '127.0.0.1:0'] : []
  // An older executable, to which another one is compared, has no such option.
  const threadFlags = threads === 1 && cores === String(SERVER_CORE) ? [] : ['--threads', String(threads)]
  const flags = [
    '--database',
    database,
    '--listen',
    `127.0.0.1:${port}`,
    '--log-level',
    'error',
    ...threadFlags,
    ...metrics,
  ]
  const child = workspace.spawn(cores, [...(hasSlowSyncs ? SLOW_SYNCS : []), executable, 'serve', ...flags])
  return toServer('plantstore', child, port)
}

/** Waits until a server answers a request with success. Each request has a connection of its own. */
export async function untilOk({ name, url }: Server, path: string, lookMs: number, token = ''): Promise<void> {
  const headers = { authorization: `Bearer ${token}`, connection: 'close' }
  const isOk = () =>
    fetch(url + path, { headers }).then(
      ({ ok }) => ok,
      () => false,
    )
  await until(`${name} started`, isOk, { limitMs: START_TIMEOUT_MS, lookMs })
}

/** Starts a contestant, which prints its port. */
export async function startContestant(
  workspace: Workspace,
  name: string,
  command: readonly string[],
  cores: number | string = SERVER_CORE,
): Promise<Server> {
  const child = workspace.spawn(cores, command)
  let text = ''
  for await (const chunk of child.stdout) {
    text += new TextDecoder().decode(chunk)
    if (text.includes('\n')) return toServer(name, child, Number.parseInt(text, 10))
  }
  throw new Error(`${name} did not start: ${text}`)
}

function toServer(name: string, child: ReturnType<Workspace['spawn']>, port: number): Server {
  return {
    name,
    pid: child.pid,
    port,
    url: `http://127.0.0.1:${port}`,
    cpuMs: () => cpuMs(child.pid),
    async stop() {
      child.kill('SIGTERM')
      const killing = setTimeout(() => child.kill('SIGKILL'), STOP_TIMEOUT_MS)
      await child.exited
      clearTimeout(killing)
    },
  }
}

/** The CPU time of a process, on demand with its ended children. In proc_pid_stat(5), fields 14 and 15 are utime and stime. The second field is in parentheses and may contain spaces. */
export function cpuMs(pid: number, { withEnded = false } = {}): number {
  const stat = readFileSync(`/proc/${pid}/stat`, 'latin1')
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  const ticks = fields.slice(11, withEnded ? 15 : 13).reduce((sum, field) => sum + Number(field), 0)
  return (ticks * 1000) / TICKS_PER_SECOND
}
