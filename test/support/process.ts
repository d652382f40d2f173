import { existsSync, readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import type { Requirement } from './requirement.ts'

/** What the tests of memory, CPU time and descriptors need. */
export const PROCESS_TOOLS: Requirement = {
  missing: '/proc, prlimit or taskset is missing',
  isMet: () => Boolean(existsSync('/proc/self/status') && Bun.which('prlimit') && Bun.which('taskset')),
}

/** The core of a server whose limit is measured, and the core of its load. */
export const SERVER_CORE = 0
export const LOAD_CORE = 1
export const ALL_CORES = `${SERVER_CORE},${LOAD_CORE}`

/** The unit of times in /proc (`getconf CLK_TCK`), which is 100 on every Linux of today. */
const TICKS_PER_SECOND = 100
const MIB = 1024 ** 2

/** The memory that a process uses now. */
export const residentMib = (pid: number): number => memoryBytes(pid, 'VmRSS') / MIB
/** The most memory that a process has used. */
export const peakMib = (pid: number): number => memoryBytes(pid, 'VmHWM') / MIB

/** See proc_pid_status(5). */
export function memoryBytes(pid: number, field: 'VmRSS' | 'VmHWM'): number {
  const [, kib] = new RegExp(`^${field}:\\s+(\\d+) kB$`, 'm').exec(readFileSync(`/proc/${pid}/status`, 'latin1')) ?? []
  return Number(kib) * 1024
}

/** How many descriptors a process has open. */
export const countDescriptors = (pid: number): number => readdirSync(`/proc/${pid}/fd`).length

/** The ids of the threads that a process has started for its own code, in their order, as Linux lists them. */
export const workersOf = (pid: number): readonly number[] =>
  readdirSync(`/proc/${pid}/task`)
    .filter((tid) => readFileSync(`/proc/${pid}/task/${tid}/comm`, 'latin1') === 'Worker\n')
    .map(Number)

/** How many descriptors a process may have open. */
export const descriptorsMax = (pid: number): number =>
  Number(/^Max open files +(\d+)/m.exec(readFileSync(`/proc/${pid}/limits`, 'latin1'))?.[1])

/** How many descriptors of a process are open on a file. */
export const countOpen = (pid: number, path: string): number =>
  readdirSync(`/proc/${pid}/fd`).filter((fd) => targetOf(`/proc/${pid}/fd/${fd}`) === path).length

/** The path of a descriptor; `undefined` if it was closed meanwhile. */
function targetOf(link: string): string | undefined {
  try {
    return readlinkSync(link)
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined
    throw error
  }
}

/** The CPU time of a process, on demand with its ended children: the fields 14 to 17 of proc_pid_stat(5). */
export function cpuMs(pid: number, { withEnded = false } = {}): number {
  const stat = readFileSync(`/proc/${pid}/stat`, 'latin1')
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  const ticks = fields.slice(11, withEnded ? 15 : 13).reduce((sum, field) => sum + Number(field), 0)
  return (ticks * 1000) / TICKS_PER_SECOND
}

/** The size of a file, or 0 if it does not exist. */
export const sizeMib = (path: string): number => Bun.file(path).size / MIB

/** The program with its arguments that runs a command on the servers' core, if there are several cores. */
export const ON_SERVER_CORE = availableParallelism() > 1 ? ['taskset', '-c', String(SERVER_CORE)] : []

/** Moves all threads of this process to the load's core, if there are several cores. */
export function moveToLoadCore(): void {
  if (availableParallelism() === 1) return
  const { exitCode, stderr } = Bun.spawnSync(['taskset', '-a', '-c', '-p', String(LOAD_CORE), String(process.pid)])
  if (exitCode !== 0) throw new Error(`this process cannot move to a core: ${stderr.toString()}`)
}
