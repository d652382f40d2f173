/** A system call that strace has seen. Moments are lines of the trace, which order the calls of all threads. */
export interface Call {
  readonly name: string
  /** The text between its parentheses. */
  readonly args: string
  /** The number that the call returned; `undefined` if it never did. */
  readonly result: number | undefined
  readonly begunAt: number
  /** `Infinity` if the call never returned. */
  readonly doneAt: number
}

const CALLS = [
  ...['open', 'openat', 'openat2', 'creat', 'rename', 'renameat', 'renameat2', 'link', 'linkat', 'unlink', 'unlinkat'],
  ...['write', 'writev', 'pwrite64', 'pwritev', 'pwritev2', 'truncate', 'ftruncate', 'fallocate', 'copy_file_range'],
  ...['fsync', 'fdatasync', 'sync_file_range', 'sendto', 'sendmsg', 'sendmmsg', 'sendfile', 'splice'],
]
/** More than any call writes: pages, an answer, or a line of the log. */
const MAX_TEXT_BYTES = 1024 * 1024

/**
 * The program with its arguments that runs a command and appends its calls to a file. With `detached` the command is a direct
 * child and gets signals. Otherwise the trace is complete when the command has ended.
 */
export const strace = (file: string, { detached }: { readonly detached: boolean }): readonly string[] => [
  'strace',
  ...(detached ? ['-D'] : []),
  ...['-f', '--seccomp-bpf', '-y', '-xx', '-s', String(MAX_TEXT_BYTES)],
  // A question mark: not every architecture has all of them.
  ...['-e', `trace=${CALLS.map((name) => `?${name}`).join(',')}`, '-A', '-o', file],
]

const WHOLE = /^(\d+) +(\w+)\((.*)\) += (-?\d+|\?)/s
const BEGUN = /^(\d+) +(\w+)\((.*?),? *<unfinished \.\.\.>$/s
const RESUMED = /^(\d+) +<\.\.\. \w+ resumed>(.*)\) += (-?\d+|\?)/s

/** The calls of a trace in the order of their ends. Calls that never ended come last. */
export function readCalls(trace: string): Call[] {
  const calls: Call[] = []
  const unfinished = new Map<string, Pick<Call, 'name' | 'args' | 'begunAt'>>()
  let moment = 0
  for (const line of trace.split('\n')) {
    moment++
    const resumed = RESUMED.exec(line)
    if (resumed !== null) {
      const [, thread = '', rest = '', result = ''] = resumed
      const begun = unfinished.get(thread)
      unfinished.delete(thread)
      if (begun !== undefined) calls.push({ ...begun, args: begun.args + rest, ...ended(result, moment) })
      continue
    }
    const [, thread = '', name = '', args = '', result] = WHOLE.exec(line) ?? BEGUN.exec(line) ?? []
    if (thread === '') continue
    if (result === undefined) unfinished.set(thread, { name, args, begunAt: moment })
    else calls.push({ name, args, begunAt: moment, ...ended(result, moment) })
  }
  return [...calls, ...[...unfinished.values()].map((begun) => ({ ...begun, ...ended('?', moment) }))]
}

const ended = (result: string, doneAt: number): Pick<Call, 'result' | 'doneAt'> =>
  result === '?' ? { result: undefined, doneAt: Number.POSITIVE_INFINITY } : { result: Number(result), doneAt }

/** The path of the descriptor that is the first argument of a call. */
export const pathOfDescriptor = ({ args }: Call): string => text(/^-?\w+<([^>]*)>/.exec(args)?.[1] ?? '')

/** The strings among the arguments: paths, or written bytes. */
export const stringsOf = ({ args }: Call): Buffer[] =>
  [...args.matchAll(/"([^"]*)"(\.\.\.)?/g)].map(([, hex = '', isCut]) => {
    if (isCut !== undefined) throw new Error(`a call has more than ${MAX_TEXT_BYTES} bytes of text`)
    return bytes(hex)
  })

/** The last argument, which is a number. */
export const lastNumberOf = ({ args }: Call): number => Number(/(?:^|, )(\d+)$/.exec(args)?.[1])

const bytes = (hex: string): Buffer => Buffer.from(hex.replaceAll('\\x', ''), 'hex')

const text = (name: string): string => (name.startsWith('\\x') ? bytes(name).toString() : name)
