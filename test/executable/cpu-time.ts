import { existsSync, readdirSync, readFileSync } from 'node:fs'
import type { Requirement } from '../support/requirement.ts'

/** The kernel's count of the CPU time of each thread. */
export const CPU_TIME: Requirement = {
  missing: '/proc/self/schedstat is missing',
  isMet: () => existsSync('/proc/self/schedstat'),
}

/** Milliseconds of CPU time that all threads of a process have used until now. */
export function cpuMsOf(pid: number): number {
  const tasks = `/proc/${pid}/task`
  return readdirSync(tasks).reduce((sum, task) => sum + Number(timeOnCpu(`${tasks}/${task}`)) / 1e6, 0)
}

/** In nanoseconds: the first word (https://docs.kernel.org/scheduler/sched-stats.html). */
const timeOnCpu = (task: string): string | undefined => readFileSync(`${task}/schedstat`, 'utf8').split(' ')[0]
