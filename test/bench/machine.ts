import { availableParallelism, cpus, platform, release } from 'node:os'
import { version } from '../../package.json'

/** The programs that the benchmark starts, with their Debian packages. */
const PACKAGES = { taskset: 'util-linux', wrk: 'wrk', node: 'nodejs' } as const
const CORES_MIN = 2

/** The commands that print the version of what is measured or measures. */
const VERSIONS = {
  commit: ['git', 'rev-parse', '--short', 'HEAD'],
  node: ['node', '--version'],
  rust: ['rustc', '--version'],
  go: ['go', 'version'],
  wrk: ['wrk', '--version'],
  postgres: ['psql', '--version'],
} as const

/** The machine of a measurement. Only ratios are comparable between machines. */
export interface Machine {
  readonly cores: number
  readonly processor: string
  readonly kernel: string
}

/** Throws if this machine cannot run the benchmark, or lacks one of the programs, and says what to do. */
export function requireMachine(programs: readonly (keyof typeof PACKAGES)[]): void {
  if (platform() !== 'linux') throw new Error('The benchmark needs Linux: it pins to cores and reads /proc.')
  // Later, this process is pinned to one core.
  if (availableParallelism() < CORES_MIN)
    throw new Error('The benchmark needs two cores: server and load get one each.')
  const missing = programs.filter((program) => Bun.which(program) === null)
  if (missing.length === 0) return
  const packages = missing.map((program) => PACKAGES[program]).join(' ')
  throw new Error(`Missing: ${missing.join(', ')}. On Debian and Ubuntu: apt-get install ${packages}`)
}

/** Describes the machine. */
export const describeMachine = (): Machine => ({
  cores: cpus().length,
  processor: cpus()[0]?.model ?? 'unknown',
  kernel: release(),
})

/** The versions of the service and of the programs that are installed. The lock files have those of all libraries. */
export function describeVersions(): Readonly<Record<string, string>> {
  const installed = Object.entries(VERSIONS).filter(([, [program]]) => Bun.which(program) !== null)
  return {
    plantstore: version,
    bun: Bun.version,
    ...Object.fromEntries(installed.map(([name, command]) => [name, firstLine(command)])),
  }
}

const firstLine = (command: readonly string[]): string =>
  /^.*/.exec(Bun.spawnSync([...command]).stdout.toString())?.[0].trim() ?? ''
