import { existsSync, statSync } from 'node:fs'
import { availableParallelism, platform } from 'node:os'
import { dirname, join } from 'node:path'
import { Glob } from 'bun'
import { EXECUTABLE } from './servers.ts'
import { PROJECT } from './workspace.ts'

/** The programs that the benchmark starts, with their Debian packages. */
const PACKAGES = { taskset: 'util-linux', wrk: 'wrk', strace: 'strace', node: 'nodejs', npm: 'npm' } as const
const CORES_MIN = 2

/** Loads the only native dependency, which is built for one version of Node. */
const LOAD_SQLITE = "new (require('better-sqlite3'))(':memory:').close()"

type Program = keyof typeof PACKAGES

/** Throws if this machine cannot run the benchmark, or lacks one of the programs, and says what to do. */
export function requireMachine(programs = Object.keys(PACKAGES) as readonly Program[]): void {
  if (platform() !== 'linux') throw new Error('The benchmark needs Linux: it pins to cores and reads /proc.')
  // Later, this process is pinned to one core.
  if (availableParallelism() < CORES_MIN)
    throw new Error('The benchmark needs two cores: server and load get one each.')
  const missing = programs.filter((program) => Bun.which(program) === null)
  if (missing.length === 0) return
  const packages = missing.map((program) => PACKAGES[program]).join(' ')
  throw new Error(`Missing: ${missing.join(', ')}. On Debian and Ubuntu: apt-get install ${packages}`)
}

/** Builds the executable if there is none. */
export function requireExecutable(say: (text: string) => void): void {
  if (!existsSync(EXECUTABLE)) {
    say('dist/plantstore is missing: bun run build')
    runHere(['bun', 'run', 'build'], PROJECT)
  }
  const builtMs = statSync(EXECUTABLE).mtimeMs
  const newer = [...new Glob('src/**/*').scanSync(PROJECT)].filter(
    (file) => statSync(join(PROJECT, file)).mtimeMs > builtMs,
  )
  if (newer.length > 0) say(`dist/plantstore is older than ${newer.join(', ')}: it is measured as it is`)
}

/** Installs the dependencies of the peers, and builds the native one. */
export function requirePeers(say: (text: string) => void, { needsSqlite = true } = {}): void {
  runHere(['bun', 'install', '--frozen-lockfile', '--silent'], import.meta.dir)
  if (!needsSqlite || loadsSqlite()) return
  say('better-sqlite3 is downloaded for this Node, or built if that cannot be: it takes a minute')
  runHere(['npm', 'rebuild', 'better-sqlite3'], import.meta.dir, nodeHeaders())
  if (!loadsSqlite()) throw new Error('better-sqlite3 does not load: see "What it needs" in test/bench/README.md.')
}

const loadsSqlite = (): boolean =>
  Bun.spawnSync(['node', '-e', LOAD_SQLITE], { cwd: import.meta.dir, stdout: 'ignore', stderr: 'ignore' }).success

/** Avoids a download if Node has its headers beside itself. */
function nodeHeaders(): Readonly<Record<string, string>> {
  const node = Bun.spawnSync(['node', '-p', 'process.execPath']).stdout.toString().trim()
  const prefix = dirname(dirname(node))
  return existsSync(join(prefix, 'include/node/node.h')) ? { npm_config_nodedir: prefix } : {}
}

function runHere(command: readonly string[], cwd: string, env: Readonly<Record<string, string>> = {}): void {
  const { exitCode, stderr, stdout } = Bun.spawnSync([...command], { cwd, env: { ...process.env, ...env } })
  if (exitCode !== 0) throw new Error(`${command.join(' ')} ended with ${exitCode}:\n${stdout}${stderr}`)
}
