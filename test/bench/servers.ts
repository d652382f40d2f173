import { join } from 'node:path'
import { freePort } from '../support/postgres-system.ts'
import { cpuMs, SERVER_CORE } from '../support/process.ts'
import { until } from '../support/until.ts'
import { PROJECT, type Workspace } from './workspace.ts'

/** The executable of this working copy, which `bun run bench` builds. */
const EXECUTABLE = join(PROJECT, 'dist/plantstore')

const START_TIMEOUT_MS = 20_000
const STOP_TIMEOUT_MS = 20_000

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
  /** Further options of the server. */
  readonly flags?: readonly string[]
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
  { flags = [], executable = EXECUTABLE, cores = String(SERVER_CORE), threads = 1 }: PlantstoreOptions = {},
): Server {
  const port = freePort()
  // An older executable, to which another one is compared, has no such option.
  const threadFlags = threads === 1 && cores === String(SERVER_CORE) ? [] : ['--threads', String(threads)]
  const command = [executable, 'serve', '--database', database, '--listen', `127.0.0.1:${port}`, '--log-level', 'error']
  const child = workspace.spawn(cores, [...command, ...threadFlags, ...flags])
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
