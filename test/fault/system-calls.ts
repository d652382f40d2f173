import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { makeFolder } from '../support/folder.ts'
import { until } from './watch.ts'

/** What syncs a file: SQLite does it by the first; a build that does it by the second is tested just so. */
export const SYNCS = ['fsync', 'fdatasync'] as const
/** What is seen of a process: all that touches the bytes of its files. */
const SEEN = [...SYNCS, 'pread64', 'pwrite64', 'ftruncate', 'link', 'unlink', 'unlinkat', 'rename'] as const

/** The name of a system call that is seen. */
export type CallName = (typeof SEEN)[number]

/** A fault in system calls. */
interface Fault {
  readonly calls: readonly CallName[]
  /** As strace says it: `error=EIO`, `signal=SIGKILL`. A signal comes before the call, which is not made any more. */
  readonly fault: string
  /** As strace says it: `3` is the third of a thread and of its name, `3+` all from there on. */
  readonly when: string
}

interface TraceOptions {
  /** None if left out. */
  readonly inject?: Fault
  /** The files whose calls are counted and seen; all if left out. */
  readonly files?: readonly string[]
  /** Whether strace stops the process at every call, also at those that are not seen. */
  readonly stopsAtAll?: boolean
}

/** A system call that was seen. */
export interface SeenCall {
  readonly name: CallName
  /** The file or the folder that it is about. */
  readonly path: string
  /** When it began. */
  readonly atMs: number
  readonly isInjected: boolean
  /** Whether the process was killed before it was made. */
  readonly isLast: boolean
}

/**
 * Looks at the system calls of a command by strace, and brings faults into them. The command keeps its signals and its
 * exit code.
 */
export function traceCalls({ inject, files = [], stopsAtAll = false }: TraceOptions) {
  const folder = makeFolder()
  const file = join(folder.path, 'trace')
  // What filters calls in the kernel makes all others fast, and loses the signals that strace injects.
  const filter = stopsAtAll || inject?.fault.startsWith('signal=') ? [] : ['--seccomp-bpf']
  // A question mark: not every architecture has all of them.
  const seen = SEEN.map((name) => `?${name}`).join(',')
  const injection = inject && `inject=${inject.calls.join(',')}:${inject.fault}:when=${inject.when}`
  return {
    /** What the command is to be run under. */
    under: [
      ...['strace', '-D', '-f', ...filter, '-y', '-ttt', '-s', '0', '-o', file, '-e', `trace=${seen}`],
      ...(injection === undefined ? [] : ['-e', injection]),
      ...files.flatMap((path) => ['-P', path]),
    ],
    /** What the process did: its calls in the order of their ends, and when it was gone. Waits until strace has seen its end. */
    async seen() {
      let trace = ''
      await until('strace has seen the end of the process', () => {
        trace = readFileSync(file, 'latin1')
        return END.test(trace)
      })
      return { calls: readCalls(trace), endedAtMs: Number(END.exec(trace)?.[1]) * 1000 }
    },
    [Symbol.dispose]: folder[Symbol.dispose],
  }
}

/** The last line of a trace, with its time. */
const END = /([\d.]+) \+\+\+ (?:killed by|exited with) [^\n]*\n$/
/** A line of the trace: the thread, the time, and the call, of which other threads may leave only one end. */
const LINE = /^(\d+) +([\d.]+) (?:(\w+)\((.*)|<\.\.\. (\w+) resumed>(.*))$/
const PATH = /<([^>]+)>|"([^"]+)"/

function readCalls(trace: string): SeenCall[] {
  const calls: SeenCall[] = []
  const begun = new Map<string, { readonly atS: string; readonly args: string }>()
  for (const line of trace.split('\n')) {
    const [, thread = '', nowS = '', whole, wholeArgs = '', resumed, rest = wholeArgs] = LINE.exec(line) ?? []
    const name = whole ?? resumed
    if (name === undefined) continue
    const { atS, args } = (resumed === undefined ? undefined : begun.get(thread)) ?? { atS: nowS, args: wholeArgs }
    if (rest.endsWith('<unfinished ...>')) {
      begun.set(thread, { atS, args })
      continue
    }
    const [, ofDescriptor, path = ofDescriptor ?? ''] = PATH.exec(args) ?? []
    calls.push({
      // strace was asked for no others.
      name: name as CallName,
      path,
      atMs: Number(atS) * 1000,
      isInjected: rest.includes('(INJECTED)'),
      isLast: rest.endsWith(' = ?'),
    })
  }
  return calls
}
