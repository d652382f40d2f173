import { existsSync, readdirSync, readFileSync } from 'node:fs'

/** Whether the tests that count CPU time are skipped: where the system does not tell it. With `CI=true` they fail instead. */
export const CPU_IS_SKIPPED = process.env.CI !== 'true' && !existsSync('/proc/self/schedstat')
/** For the names of those tests, to say that they are skipped. */
export const CPU_NOTE = CPU_IS_SKIPPED ? ' (skipped: the system does not say what CPU time a process has used)' : ''

/** Milliseconds of CPU time that all threads of a process have used until now. */
export function cpuMsOf(pid: number): number {
  const tasks = `/proc/${pid}/task`
  return readdirSync(tasks).reduce((sum, task) => sum + Number(timeOnCpu(`${tasks}/${task}`)) / 1e6, 0)
}

/** In nanoseconds: the first word (https://docs.kernel.org/scheduler/sched-stats.html). */
const timeOnCpu = (task: string): string | undefined => readFileSync(`${task}/schedstat`, 'utf8').split(' ')[0]
