import { existsSync, readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import type { Requirement } from '../support/requirement.ts'

/** What the tests of memory, CPU time and descriptors need. */
export const PROCESS_TOOLS: Requirement = {
  missing: '/proc, prlimit or taskset is missing',
  isMet: () => Boolean(existsSync('/proc/self/status') && Bun.which('prlimit') && Bun.which('taskset')),
}

/** The core of a server whose limit is looked for, and that of whoever loads it. */
const SERVER_CORE = 0
const LOAD_CORE = 1

/** The unit of times in /proc (`getconf CLK_TCK`; 100 on every Linux of today). */
const TICKS_PER_SECOND = 100
const MIB = 1024 ** 2

/** Memory of a process that is in use now. */
export const residentMib = (pid: number): number => statusKib(pid, 'VmRSS') / 1024
/** The most memory that a process has had in use. */
export const peakMib = (pid: number): number => statusKib(pid, 'VmHWM') / 1024

/** See proc_pid_status(5). */
function statusKib(pid: number, field: string): number {
  const [, kib] = new RegExp(`^${field}:\\s+(\\d+) kB$`, 'm').exec(readFileSync(`/proc/${pid}/status`, 'latin1')) ?? []
  return Number(kib)
}

/** How many descriptors a process has open. */
export const countDescriptors = (pid: number): number => readdirSync(`/proc/${pid}/fd`).length

/** How many descriptors of a process are of a file. */
export const countOpen = (pid: number, path: string): number =>
  readdirSync(`/proc/${pid}/fd`).filter((fd) => targetOf(`/proc/${pid}/fd/${fd}`) === path).length

/** What a descriptor is of; nothing if it has been closed since. */
function targetOf(link: string): string | undefined {
  try {
    return readlinkSync(link)
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined
    throw error
  }
}

/** Time that all threads of a process have had a core; see proc_pid_stat(5): the 14th and the 15th field. */
export function cpuMs(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, 'latin1')
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  return ((Number(fields[11]) + Number(fields[12])) * 1000) / TICKS_PER_SECOND
}

/** Size of a file, or 0 where there is none. */
export const sizeMib = (path: string): number => Bun.file(path).size / MIB

/** What runs a command on the core of servers, where there are several cores. */
export const ON_SERVER_CORE = availableParallelism() > 1 ? ['taskset', '-c', String(SERVER_CORE)] : []

/** Moves this process, all its threads, to the core of loads, where there are several. */
export function moveToLoadCore(): void {
  if (availableParallelism() === 1) return
  const { exitCode, stderr } = Bun.spawnSync(['taskset', '-a', '-c', '-p', String(LOAD_CORE), String(process.pid)])
  if (exitCode !== 0) throw new Error(`cannot be moved to a core: ${stderr.toString()}`)
}
