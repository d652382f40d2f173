import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { serve } from '../support/executable.ts'
import { makeFolder } from '../support/folder.ts'
import { until } from '../support/until.ts'
import { copyDatabase, QUIET } from './test-database.ts'

/** The calls that sync a file. SQLite uses one of them, depending on how it was built. */
export const SYNCS = ['fsync', 'fdatasync']
/** All calls that touch the bytes or the name of a file. */
const SEEN = [...SYNCS, 'pread64', 'pwrite64', 'ftruncate', 'link', 'unlink', 'unlinkat', 'rename']

export interface TraceOptions {
  /** A fault as strace writes it, like `fsync:error=EIO:when=3`. A signal comes before the call, which is then not made. */
  readonly inject?: string
  /** The files whose calls are counted and seen; all if left out. */
  readonly files?: readonly string[]
  /** Whether strace stops the process at every call, also at those that are not seen. */
  readonly stopsAtAll?: boolean
}

/** A system call on a file. */
export type SeenCall = ReturnType<typeof toSeen>

/** Records the system calls of a command by strace, and injects faults. The command keeps its signals and its exit code. */
export function traceCalls({ inject, files = [], stopsAtAll = false }: TraceOptions = {}) {
  const folder = makeFolder()
  const file = join(folder.path, 'trace')
  // Filtering in the kernel makes all other calls fast, but loses the signals that strace injects.
  const filter = stopsAtAll || inject?.includes('signal=') ? [] : ['--seccomp-bpf']
  return {
    /** The program with its arguments that runs the command. */
    under: [
      ...['strace', '-D', '-f', ...filter, '-y', '-ttt', '-s', '0', '-o', file, '-e', `trace=${traced(SEEN)}`],
      ...(inject === undefined ? [] : ['-e', `inject=${inject}`]),
      ...files.flatMap((path) => ['-P', path]),
    ],
    /** Waits until strace has seen the end of the process. Resolves to all calls in the order of their ends, and that time. */
    async seen() {
      let trace = ''
      await until('strace has seen the end of the process', (see) => {
        trace = see(readFileSync(file, 'latin1'))
        return END.test(trace)
      })
      return { calls: readCalls(trace).map(toSeen), endedAtMs: Number(END.exec(trace)?.[1]) * 1000 }
    },
    [Symbol.dispose]: folder[Symbol.dispose],
  }
}

/** The calls of a start up to its last sync, which ends the writing of a start. The start is made on a copy. */
export async function callsOfStart(database: string): Promise<readonly SeenCall[]> {
  using copy = copyDatabase(database)
  using trace = traceCalls()
  await using server = await serve(copy.database, QUIET, { under: trace.under })
  server.signal('SIGKILL')
  await server.ended()
  const { calls } = await trace.seen()
  return calls.slice(0, 1 + calls.findLastIndex(({ name }) => name === 'fsync'))
}

/** The calls for `-e trace=`. A question mark: not every architecture has all of them. */
export const traced = (names: readonly string[]) => names.map((name) => `?${name}`).join(',')

/** The last line of a trace, with its time. */
const END = /([\d.]+) \+\+\+ (?:killed by|exited with) [^\n]*\n$/
const PATH = /<([^>]+)>|"([^"]+)"/

const toSeen = ({ name, args, result, atS }: Call) => ({
  name,
  /** The path of its file or folder. */
  path: PATH.exec(args)?.slice(1).find(Boolean) ?? '',
  /** When the call began. */
  atMs: Number(atS) * 1000,
  isInjected: result.includes('(INJECTED)'),
  /** Whether the process was killed before the call was made. */
  isLast: result === '?',
})

/** A system call that strace has seen. Moments are lines of the trace, which order the calls of all threads. */
export interface Call {
  readonly name: string
  /** The text between its parentheses. */
  readonly args: string
  /** What it returned, as strace writes it. */
  readonly result: string
  /** The time of day at which it began, if the trace has times. */
  readonly atS: string | undefined
  readonly begunAt: number
  readonly doneAt: number
}

/** A line of the trace: the thread, the time, and the call. A line of another thread may cut a call into two lines. */
const WHOLE = /^(\d+) +(?:([\d.]+) )?(\w+)\((.*)\) += (.*)$/s
const BEGUN = /^(\d+) +(?:([\d.]+) )?(\w+)\((.*?),? *<unfinished \.\.\.>$/s
const RESUMED = /^(\d+) +(?:[\d.]+ )?<\.\.\. \w+ resumed>(.*)\) += (.*)$/s

/** The calls of a trace that have returned, in the order of their ends. */
export function readCalls(trace: string): Call[] {
  const calls: Call[] = []
  const unfinished = new Map<string, Omit<Call, 'result' | 'doneAt'>>()
  for (const [moment, line] of trace.split('\n').entries()) {
    const [, resumed = '', rest = '', last = ''] = RESUMED.exec(line) ?? []
    const begun = unfinished.get(resumed)
    unfinished.delete(resumed)
    if (begun !== undefined) calls.push({ ...begun, args: begun.args + rest, result: last, doneAt: moment })
    const [, thread = '', atS, name = '', args = '', result] = WHOLE.exec(line) ?? BEGUN.exec(line) ?? []
    if (name === '') continue
    if (result === undefined) unfinished.set(thread, { name, args, atS, begunAt: moment })
    else calls.push({ name, args, atS, result, begunAt: moment, doneAt: moment })
  }
  return calls
}
