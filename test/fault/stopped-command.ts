import { existsSync, readFileSync } from 'node:fs'
import { COMMAND } from '../support/executable.ts'
import { startProgram } from '../support/program.ts'
import { until } from '../support/until.ts'
import { traced } from './system-calls.ts'

/** The calls by which a program finds, opens, locks and reads a file. */
export const CALLS_ON_FILE = ['openat', 'fcntl', 'pread64', 'statx', 'link']
/** The calls by which a program makes a file and changes it. */
export const CALLS_THAT_CHANGE = ['link', 'rename', 'unlink', 'pwrite64', 'ftruncate', 'fsync', 'fdatasync']

/** A call: the first one, the second one … of its name. */
export interface Point {
  readonly name: string
  readonly count: number
}

interface StopOptions {
  readonly cwd: string
  /** Where the calls are recorded. The last line tells the end of the command. */
  readonly trace: string
  readonly calls: readonly string[]
  /** Only calls on this file count; all if left out. */
  readonly file?: string
  readonly stopAt?: Point | undefined
  /** Faults as strace writes them. */
  readonly inject?: readonly string[]
}

/** Starts a command, and stops it after one of its calls. */
export function startStopped(args: readonly string[], { cwd, trace, calls, file, stopAt, inject = [] }: StopOptions) {
  const stop = stopAt === undefined ? [] : [`${stopAt.name}:signal=SIGSTOP:when=${stopAt.count}`]
  const faults = [...inject, ...stop].flatMap((fault) => ['-e', `inject=${fault}`])
  const only = file === undefined ? [] : ['-P', file]
  const under = ['strace', '-D', '-f', '-o', trace, ...only, '-e', `trace=${traced(calls)}`, ...faults]
  const started = startProgram([...under, ...COMMAND, ...args], { cwd })
  const readTrace = () => (existsSync(trace) ? readFileSync(trace, 'latin1') : '')
  const hasEnded = () => started.child.exitCode !== null || started.child.signalCode !== null
  return {
    ...started,
    /** Resolves to whether the command is stopped. Else it has ended, or listens. */
    isStopped: () =>
      until('the command is stopped or has ended', (see) => {
        if (hasEnded() || started.stdout().includes('listening')) return { stopped: false }
        return see(readTrace()).includes('--- stopped by SIGSTOP ---') && { stopped: true }
      }),
    /** Lets it go on to its end. */
    async finish() {
      let isAsked = false
      await until('it has ended', (see) => {
        // Each of its threads is stopped at that call.
        started.child.kill('SIGCONT')
        if (!isAsked && see(started.stdout()).includes('listening')) started.child.kill('SIGTERM')
        isAsked ||= started.stdout().includes('listening')
        return hasEnded()
      })
      return started.ended
    },
    /** All calls of its first thread that count. */
    async points(): Promise<readonly Point[]> {
      await until('strace has seen the end', (see) => /exited with \d+ \+\+\+\n$/.test(see(readTrace())))
      const counts = new Map<string, number>()
      return Array.from(readTrace().matchAll(new RegExp(`^${started.child.pid} +(\\w+)\\(`, 'gm')), ([, name = '']) => {
        const count = (counts.get(name) ?? 0) + 1
        counts.set(name, count)
        return { name, count }
      })
    },
  }
}
