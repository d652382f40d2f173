import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { serve } from '../support/executable.ts'
import { makeFolder } from '../support/folder.ts'
import type { Random } from '../support/random.ts'
import { until } from '../support/until.ts'
import { copyDatabase, QUIET } from './test-database.ts'

/** The calls that sync a file. SQLite uses one of them, depending on how it was built. */
export const SYNCS = ['fsync', 'fdatasync'] as const
/** All calls that touch the bytes or the name of a file. */
const SEEN = [...SYNCS, 'pread64', 'pwrite64', 'ftruncate', 'link', 'unlink', 'unlinkat', 'rename'] as const

/** The name of a system call that is seen. */
type CallName = (typeof SEEN)[number]

/** A fault in system calls. */
export interface Fault {
  readonly calls: readonly CallName[]
  /** As strace writes it: `error=EIO`, `signal=SIGKILL`. A signal comes before the call, which is then not made. */
  readonly fault: string
  /** As strace writes it: `3` is the third call of a thread with the same name, `3+` is all calls from the third on. */
  readonly when: string
}

interface TraceOptions {
  readonly inject?: Fault
  /** The files whose calls are counted and seen; all if left out. */
  readonly files?: readonly string[]
  /** Whether strace stops the process at every call, also at those that are not seen. */
  readonly stopsAtAll?: boolean
}

/** A system call that was seen. */
export interface SeenCall {
  readonly name: CallName
  /** The path of its file or folder. */
  readonly path: string
  /** When the call began. */
  readonly atMs: number
  readonly isInjected: boolean
  /** Whether the process was killed before the call was made. */
  readonly isLast: boolean
}

/** Records the system calls of a command by strace, and injects faults. The command keeps its signals and its exit code. */
export function traceCalls({ inject, files = [], stopsAtAll = false }: TraceOptions = {}) {
  const folder = makeFolder()
  const file = join(folder.path, 'trace')
  // Filtering in the kernel makes all other calls fast, but loses the signals that strace injects.
  const filter = stopsAtAll || inject?.fault.startsWith('signal=') ? [] : ['--seccomp-bpf']
  // A question mark: not every architecture has all of them.
  const seen = SEEN.map((name) => `?${name}`).join(',')
  const injection = inject && `inject=${inject.calls.join(',')}:${inject.fault}:when=${inject.when}`
  return {
    /** The program with its arguments that runs the command. */
    under: [
      ...['strace', '-D', '-f', ...filter, '-y', '-ttt', '-s', '0', '-o', file, '-e', `trace=${seen}`],
      ...(injection === undefined ? [] : ['-e', injection]),
      ...files.flatMap((path) => ['-P', path]),
    ],
    /** Waits until strace has seen the end of the process. Resolves to all calls in the order of their ends, and that time. */
    async seen() {
      let trace = ''
      await until('strace has seen the end of the process', () => {
        trace = readFileSync(file, 'latin1')
        return END.test(trace)
      })
      return { calls: parseCalls(trace), endedAtMs: Number(END.exec(trace)?.[1]) * 1000 }
    },
    [Symbol.dispose]: folder[Symbol.dispose],
  }
}

/** Kills the process at one of its calls. */
export const killAt = (name: CallName, when: number): Fault => ({
  calls: [name],
  fault: 'signal=SIGKILL',
  when: String(when),
})

/** Picks one of some calls at random, by its name and its place among the calls of that name. */
export function pickCall(calls: readonly SeenCall[], random: Random, only?: readonly CallName[]) {
  const names = [...new Set(calls.map((call) => call.name))].filter((name) => only === undefined || only.includes(name))
  const name = names[random(names.length)] ?? 'fsync'
  return { name, when: 1 + random(calls.filter((call) => call.name === name).length) }
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

/** The last line of a trace, with its time. */
const END = /([\d.]+) \+\+\+ (?:killed by|exited with) [^\n]*\n$/
/** A line of the trace: the thread, the time, and the call. A line of another thread may cut a call into two lines. */
const LINE = /^(\d+) +([\d.]+) (?:(\w+)\((.*)|<\.\.\. (\w+) resumed>(.*))$/
const PATH = /<([^>]+)>|"([^"]+)"/

function parseCalls(trace: string): SeenCall[] {
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
