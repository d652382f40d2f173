import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { makeFolder } from './folder.ts'
import { startProgram } from './program.ts'
import type { Requirement } from './requirement.ts'
import { until } from './until.ts'

export const STRACE: Requirement = {
  missing: 'strace is missing or must not trace',
  isMet: () => Bun.which('strace') !== null && Bun.spawnSync(['strace', '-o', '/dev/null', 'true']).exitCode === 0,
}

/** Runs a command whose calls of these names take longer. strace runs beside it, and the command keeps its signals and its exit code. */
export const slowCalls = (names: string, delayMs: number): readonly string[] => [
  ...['strace', '-D', '-f', '--seccomp-bpf', '-o', '/dev/null', '-e', `trace=${names}`],
  ...['-e', `inject=${names}:delay_exit=${delayMs * 1000}`],
]

/** A sync that has ended, and the beginning of an answer. A sync that other calls interrupt is two lines. */
const SYNC = /\b(?:fsync|fdatasync)(?:\([^)]*\)| resumed>.*\)) += 0/
const ANSWER = /"HTTP\/1\.1 2/

/** Watches all threads of a process from now on. `end` returns the syncs and the answers with success, in order. */
export async function traceSyncs(pid: number) {
  const trace = await traceCalls(pid, ['-e', 'trace=fsync,fdatasync,write,writev,sendto,sendmsg'])
  return {
    ...trace,
    async end(): Promise<('sync' | 'answer')[]> {
      const lines = (await trace.end()).split('\n')
      return lines.flatMap((line) => {
        if (SYNC.test(line)) return ['sync']
        return ANSWER.test(line) ? ['answer'] : []
      })
    },
  }
}

/** The path that a call is given, or the path of a descriptor. */
const PATH = /"([^"]+)"|\d+<([^>]+)>/

/** Watches all threads of a process from now on. `end` returns the files whose times and sizes the process has read. */
export async function traceLooks(pid: number) {
  const trace = await traceCalls(pid, ['-y', '-e', 'trace=%%stat'])
  return {
    ...trace,
    async end(): Promise<ReadonlySet<string>> {
      const paths = (await trace.end()).split('\n').map((line) => PATH.exec(line))
      return new Set(paths.flatMap((found) => found?.[1] ?? found?.[2] ?? []))
    },
  }
}

/**
 * Brings a fault into some system calls of all threads of a process, or of the thread with this id, until it is disposed of.
 * `fault` is written as for strace, like `error=EROFS` or `delay_enter=500ms`.
 */
export async function injectFault(pid: number, calls: readonly string[], fault: string, { inThread = false } = {}) {
  const names = calls.join(',')
  const inject = ['-e', `trace=${names}`, '-e', `inject=${names}:${fault}`, '-o', '/dev/null']
  const strace = await attach(pid, inject, inThread ? [] : ['-f'])
  return { kill: strace.kill, [Symbol.asyncDispose]: strace.detach }
}

/** Holds one thread, whose id this is, when it next waits for events, until it is disposed of. There it has no lock of others. */
export async function holdThread(tid: number) {
  const waits = '/^epoll_p?wait'
  const inject = ['-e', `trace=${waits}`, '-e', `inject=${waits}:delay_enter=600s`]
  const { kill } = await attach(tid, [...inject, '-o', '/dev/null'], [])
  return { [Symbol.dispose]: kill }
}

/** Kills a process when it is about to send bytes over a connection. `answer` returns these bytes. */
export async function killAtAnswer(pid: number) {
  const sends = 'sendto,sendmsg,writev'
  const trace = await traceCalls(pid, ['-s', '1000', '-e', `trace=${sends}`, '-e', `inject=${sends}:signal=SIGKILL`])
  return { ...trace, answer: async (): Promise<string> => (await trace.end()).replaceAll('\\"', '"') }
}

/** Traces system calls of all threads of a process until it is disposed of. `end` returns the whole trace. */
async function traceCalls(pid: number, args: readonly string[]) {
  const folder = makeFolder()
  const file = join(folder.path, 'trace')
  const { detach } = await attach(pid, [...args, '-o', file])
  return {
    async end(): Promise<string> {
      await detach()
      return readFileSync(file, 'latin1')
    },
    async [Symbol.asyncDispose]() {
      await detach()
      folder[Symbol.dispose]()
    },
  }
}

/** Has strace look at all threads of a process until it is detached. Without `-f` it looks at one thread. */
async function attach(pid: number, args: readonly string[], whole: readonly string[] = ['-f']) {
  const { child, stderr } = startProgram(['strace', ...whole, '-p', String(pid), ...args])
  const detach = async () => {
    child.kill('SIGTERM')
    await child.exited
  }
  /** For a process that ended during a delay: strace would not let go of it before the delay is over. */
  const kill = () => child.kill('SIGKILL')
  // It says so once it has all of them.
  await until('strace is attached', (see) => {
    if (child.exitCode !== null || child.signalCode !== null) throw new Error(`strace did not attach: ${stderr()}`)
    return see(stderr()).includes('attached')
  })
  return { detach, kill }
}
