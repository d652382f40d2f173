import { chownSync, existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import type { Requirement } from './requirement.ts'
import { AS_NOBODY, NOBODY, nobodyMayRun } from './restricted.ts'

/** The folder in which Debian installs the programs of each version. */
const VERSIONS = '/usr/lib/postgresql'

/** The folder with `initdb`, `pg_ctl` and `postgres`, if they are installed. PLANTSTORE_TEST_POSTGRES_BIN names another one. */
export const POSTGRES_PROGRAMS = findPrograms()

/** The programs with which a test starts a PostgreSQL server of its own. */
export const OWN_POSTGRES: Requirement =
  POSTGRES_PROGRAMS === undefined
    ? { missing: 'the programs of postgresql are missing', isMet: () => false }
    : nobodyMayRun(join(POSTGRES_PROGRAMS, 'postgres'))

/** Runs a command as the user of the server. A PostgreSQL server refuses to run as root. */
export const AS_SERVER = AS_NOBODY

/** Gives a file or folder to the user of the server. */
export function ownedByServer(path: string): void {
  if (process.getuid?.() === 0) chownSync(path, NOBODY, NOBODY)
}

function findPrograms(): string | undefined {
  const given = process.env.TEST_POSTGRES_BIN ?? process.env.PLANTSTORE_TEST_POSTGRES_BIN
  if (given !== undefined) return given
  const versions = existsSync(VERSIONS) ? readdirSync(VERSIONS).sort((a, b) => Number(b) - Number(a)) : []
  const folders = versions.map((version) => join(VERSIONS, version, 'bin'))
  return folders.find((folder) => ['initdb', 'pg_ctl', 'postgres'].every((name) => existsSync(join(folder, name))))
}

/** Stops a server and removes its folder when this process ends, however it ends. A shell waits for that. */
export function endWithThisProcess(stop: readonly string[], folder: string): void {
  const script = `trap '' INT TERM; read _; folder=$1; shift; [ -e "$folder" ] && "$@" 2>/dev/null; rm -rf "$folder"`
  // No signal to a group of processes ends a detached shell.
  Bun.spawn(['/bin/sh', '-c', script, 'sh', folder, ...stop], {
    stdio: ['pipe', 'ignore', 'ignore'],
    detached: true,
  }).unref()
}

/** Ports that Linux and macOS give to nobody who asks for any, and to no client. Each process of a run of tests has others. */
const [FIRST_PORT, PORTS] = [12_000 + (Number(process.env.BUN_TEST_WORKER_ID ?? 0) % 20) * 1000, 1000]
let given = process.pid

/** A port at which nothing listens. No other program gets it by chance until the caller listens there. */
export function freePort(): number {
  const port = FIRST_PORT + (given++ % PORTS)
  try {
    Bun.listen({ hostname: '127.0.0.1', port, socket: { data() {} } }).stop(true)
    return port
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'EADDRINUSE')) throw error
    return freePort()
  }
}
