import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { makeFolder } from './folder.ts'
import { startProgram } from './program.ts'
import type { Requirement } from './requirement.ts'

export const STRACE: Requirement = {
  missing: 'strace is missing or must not trace',
  isMet: () => Bun.which('strace') !== null && Bun.spawnSync(['strace', '-o', '/dev/null', 'true']).exitCode === 0,
}

/** A sync that is over, and the beginning of an answer. One that others come in between is two lines. */
const SYNC = /\b(?:fsync|fdatasync)(?:\([^)]*\)| resumed>.*\)) += 0/
const ANSWER = /"HTTP\/1\.1 2/

/** Watches all threads of a process from now on. `end` says what was synced and answered with success, in order. */
export async function traceSyncs(pid: number) {
  const folder = makeFolder()
  const file = join(folder.path, 'trace')
  const calls = 'trace=fsync,fdatasync,write,writev,sendto,sendmsg'
  const strace = await attach(pid, ['-e', calls, '-o', file])
  return {
    async end(): Promise<('sync' | 'answer')[]> {
      await strace.detach()
      return readFileSync(file, 'latin1')
        .split('\n')
        .flatMap((line) => {
          if (SYNC.test(line)) return ['sync']
          return ANSWER.test(line) ? ['answer'] : []
        })
    },
    async [Symbol.asyncDispose]() {
      await strace.detach()
      folder[Symbol.dispose]()
    },
  }
}

/** A path that a call is given, or the one of a descriptor. */
const PATH = /"([^"]+)"|\d+<([^>]+)>/

/** Watches all threads of a process from now on. `end` says which files' times and sizes it has looked at. */
export async function traceLooks(pid: number) {
  const folder = makeFolder()
  const file = join(folder.path, 'trace')
  const strace = await attach(pid, ['-y', '-e', 'trace=%%stat', '-o', file])
  return {
    async end(): Promise<ReadonlySet<string>> {
      await strace.detach()
      const paths = readFileSync(file, 'latin1')
        .split('\n')
        .map((line) => PATH.exec(line))
      return new Set(paths.flatMap((found) => found?.[1] ?? found?.[2] ?? []))
    },
    async [Symbol.asyncDispose]() {
      await strace.detach()
      folder[Symbol.dispose]()
    },
  }
}

/**
 * Brings a fault into some system calls of all threads of a process until it is disposed of. `fault` is as strace says it,
 * like `error=EROFS` or `delay_enter=500ms`.
 */
export async function injectFault(pid: number, calls: readonly string[], fault: string) {
  const names = calls.join(',')
  const strace = await attach(pid, ['-e', `trace=${names}`, '-e', `inject=${names}:${fault}`, '-o', '/dev/null'])
  return { kill: strace.kill, [Symbol.asyncDispose]: strace.detach }
}

/** Kills a process when it is about to send bytes over a connection. `answer` says what they were. */
export async function killAtAnswer(pid: number) {
  const folder = makeFolder()
  const file = join(folder.path, 'trace')
  const sends = 'sendto,sendmsg,writev'
  const inject = `inject=${sends}:signal=SIGKILL`
  const strace = await attach(pid, ['-s', '1000', '-e', `trace=${sends}`, '-e', inject, '-o', file])
  return {
    async answer(): Promise<string> {
      await strace.detach()
      return readFileSync(file, 'latin1').replaceAll('\\"', '"')
    },
    async [Symbol.asyncDispose]() {
      await strace.detach()
      folder[Symbol.dispose]()
    },
  }
}

/** Has strace look at all threads of a process until it is detached. */
async function attach(pid: number, args: readonly string[]) {
  const { child, stderr } = startProgram(['strace', '-f', '-p', String(pid), ...args])
  const detach = async () => {
    child.kill('SIGTERM')
    await child.exited
  }
  /** For a process that ended during a delay: strace would not let go of it before the delay is over. */
  const kill = () => child.kill('SIGKILL')
  // It says so once it has all of them.
  while (!stderr().includes('attached')) {
    if (child.exitCode !== null || child.signalCode !== null) throw new Error(`strace did not attach: ${stderr()}`)
    await Bun.sleep(1)
  }
  return { detach, kill }
}
