import { readFileSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import type { CapturedAnswer } from './answers.ts'
import { PROJECT, SERVER_CORE, type Workspace } from './workspace.ts'

/** The service as it is delivered. */
export const EXECUTABLE = join(PROJECT, 'dist/plantstore')

/** Each sync takes 5 ms longer (https://man7.org/linux/man-pages/man1/strace.1.html, "Tampering"). */
const SLOW_SYNCS = [
  ...['strace', '-D', '-f', '--seccomp-bpf', '-o', '/dev/null', '-e', 'trace=fsync,fdatasync'],
  ...['-e', 'inject=fsync,fdatasync:delay_exit=5000'],
]

const START_TIMEOUT_MS = 20_000
const STOP_TIMEOUT_MS = 20_000
/** The unit of times in /proc (`getconf CLK_TCK`; 100 on every Linux of today). */
const TICKS_PER_SECOND = 100

/** A server that runs on the server core. */
export interface Server {
  readonly name: string
  readonly pid: number
  readonly port: number
  readonly url: string
  /** Time that all its threads have spent on the core so far. */
  cpuMs(): number
  stop(): Promise<void>
}

/** The others, by name, and what starts them. */
const PEERS = {
  elysia: ['bun', 'elysia.js'],
  hono: ['bun', 'hono.js'],
  fastify: ['node', 'fastify.js'],
} as const

/** A contestant that is not ours. */
export type PeerName = keyof typeof PEERS
/** All of them. */
export const PEER_NAMES: readonly PeerName[] = ['elysia', 'hono', 'fastify']

/** Starts one of the others on a database. */
export const startPeer = (workspace: Workspace, name: PeerName, database: string): Promise<Server> =>
  startContestant(workspace, name, PEERS[name], database)

/** Starts a bare server that answers what the service was seen to answer: always that, or the echo of a body. */
export async function startBare(workspace: Workspace, kind: 'bare' | 'bare-echo', answer: CapturedAnswer) {
  const file = workspace.file(`${kind}-${crypto.randomUUID()}.json`)
  writeFileSync(file, JSON.stringify(answer))
  return startContestant(workspace, 'bare', ['bun', `${kind}.ts`], file)
}

interface PlantstoreOptions {
  /** Whether it runs under strace, which delays each of its syncs by 5 ms. */
  readonly hasSlowSyncs?: boolean
  /** Whether it serves metrics, on another port. */
  readonly hasMetrics?: boolean
  /** The one that is started, unless it is the one that is built here. */
  readonly executable?: string
  /** Those that it may use, unless it is the one of servers. */
  readonly cores?: string
}

/** Starts the service on a database, as it is by default, but that it logs errors alone. */
export async function startPlantstore(workspace: Workspace, database: string, options: PlantstoreOptions = {}) {
  const metricsPort = options.hasMetrics ? await freePort() : undefined
  const server = spawnPlantstore(workspace, database, await freePort(), options, metricsPort)
  const deadlineMs = performance.now() + START_TIMEOUT_MS
  while (!(await isListening(server.port))) {
    if (performance.now() > deadlineMs) throw new Error('the service did not start')
    await Bun.sleep(5)
  }
  return server
}

/** Spawns the service, and does not wait until it listens. */
export function spawnPlantstore(
  workspace: Workspace,
  database: string,
  port: number,
  { hasSlowSyncs = false, executable = EXECUTABLE, cores = String(SERVER_CORE) }: PlantstoreOptions = {},
  metricsPort?: number,
): Server {
  const metrics = metricsPort === undefined ? [] : ['--metrics-listen', `127.0.0.1:${metricsPort}`]
  const flags = ['--database', database, '--listen', `127.0.0.1:${port}`, '--log-level', 'error', ...metrics]
  const child = workspace.spawn(cores, [...(hasSlowSyncs ? SLOW_SYNCS : []), executable, 'serve', ...flags])
  return toServer('plantstore', child, port)
}

/** Starts a contestant by its runtime and its file, on the data that it takes. */
export async function startContestant(
  workspace: Workspace,
  name: string,
  [runtime, file]: readonly string[],
  data: string,
): Promise<Server> {
  const path = join(import.meta.dir, 'contestants', file ?? '')
  const child = workspace.spawn(SERVER_CORE, [runtime ?? '', path, data])
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

/** Time that a process has spent on a core, and on demand its children that have ended. See proc_pid_stat(5): utime and stime are the 14th and 15th fields; the second, in parentheses, may hold spaces. */
export function cpuMs(pid: number, { withEnded = false } = {}): number {
  const stat = readFileSync(`/proc/${pid}/stat`, 'latin1')
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  const ticks = fields.slice(11, withEnded ? 15 : 13).reduce((sum, field) => sum + Number(field), 0)
  return (ticks * 1000) / TICKS_PER_SECOND
}

async function isListening(port: number): Promise<boolean> {
  try {
    const socket = await Bun.connect({ hostname: '127.0.0.1', port, socket: { data() {} } })
    socket.terminate()
    return true
  } catch {
    return false
  }
}

/** A port that nobody uses just now. */
export function freePort(): Promise<number> {
  const { promise, resolve, reject } = Promise.withResolvers<number>()
  const server = createServer()
  server.on('error', reject)
  server.listen(0, '127.0.0.1', () => {
    const address = server.address()
    const port = address !== null && typeof address === 'object' ? address.port : 0
    server.close(() => resolve(port))
  })
  return promise
}
