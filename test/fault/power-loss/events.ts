import { type Call, readCalls, traced } from '../system-calls.ts'

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
  ...['-e', `trace=${traced(CALLS)}`, '-A', '-o', file],
]

/** The number of a file, whatever its names. The first file has number 0. */
export type FileId = number

/** A change may reach the disk from the moment `at` on. A sync that begins after `doneAt` must bring it there. */
interface Change {
  readonly at: number
  readonly doneAt: number
}

/** Bytes were written into a file. */
export interface Written extends Change {
  readonly kind: 'written'
  readonly file: FileId
  readonly offset: number
  readonly bytes: Uint8Array
}

/** A file was cut or filled with zeros to a size. */
export interface Truncated extends Change {
  readonly kind: 'truncated'
  readonly file: FileId
  readonly size: number
}

/** Names in the folder were given to other files or removed, all of them at once. */
export interface Relinked extends Change {
  readonly kind: 'relinked'
  readonly entries: readonly (readonly [name: string, file: FileId | undefined])[]
}

/** A sync has ended at the moment `at`. */
interface Synced {
  readonly kind: 'synced'
  readonly of: FileId | 'folder'
  readonly begunAt: number
  readonly at: number
}

/** The success of the request with that id is on its way. */
interface Answered {
  readonly kind: 'answered'
  readonly requestId: string
  readonly at: number
}

/** An event in a folder, or an answer. */
export type Event = Written | Truncated | Relinked | Synced | Answered

/**
 * Reads the events of a folder, which was empty, from a trace. Throws at a call whose effect on the disk is not known here.
 * Ignores the WAL-index, which the next start makes anew.
 */
export function readEvents(trace: string, folder: string) {
  const files = namesIn(folder)
  const events: Event[] = []
  for (const call of readCalls(trace)) {
    // A failed call changes nothing. If one did, the replay would not result in the same files.
    if (!(Number.parseInt(call.result, 10) >= 0)) continue
    events.push(...eventsOf(call, files))
  }
  events.sort((a, b) => a.at - b.at)
  return { events, nameOf: files.lastNameOf }
}

type Names = ReturnType<typeof namesIn>

function namesIn(folder: string) {
  const ids = new Map<string, FileId>()
  const lastNames: string[] = []
  return {
    folder,
    /** The name of a file in the folder; `undefined` if the file is elsewhere. */
    nameOf: (path: string): string | undefined =>
      path.startsWith(`${folder}/`) && !path.includes('-shm') ? path.slice(folder.length + 1) : undefined,
    find: (name: string): FileId | undefined => ids.get(name),
    create: (name: string): FileId => lastNames.push(name) - 1,
    relink(entries: Relinked['entries']): void {
      for (const [name, file] of entries) {
        if (file === undefined) ids.delete(name)
        else {
          ids.set(name, file)
          lastNames[file] = name
        }
      }
    },
    /** The last name that a file has got. */
    lastNameOf: (file: FileId): string | undefined => lastNames[file],
  }
}

function eventsOf(call: Call, files: Names): readonly Event[] {
  const { name, begunAt, doneAt } = call
  const change = { at: begunAt, doneAt }
  if (/^(?:open|creat|unlink|rename|link)/.test(name)) {
    const entries = entriesAfter(call, files)
    files.relink(entries)
    return entries.length === 0 ? [] : [{ kind: 'relinked', entries, ...change }]
  }
  const path = pathOfDescriptor(call)
  if (path === files.folder && /sync$/.test(name)) return [{ kind: 'synced', of: 'folder', begunAt, at: doneAt }]
  const fileName = files.nameOf(path)
  if (fileName === undefined) return /^(?:write|send)/.test(name) ? answersIn(call) : []
  const file = files.find(fileName)
  if (file === undefined) throw unknown(call, fileName)
  if (/^f(?:data)?sync$/.test(name)) return [{ kind: 'synced', of: file, begunAt, at: doneAt }]
  if (name === 'ftruncate') return [{ kind: 'truncated', file, size: lastNumberOf(call), ...change }]
  if (name !== 'pwrite64') throw unknown(call, fileName)
  const [bytes = Buffer.alloc(0)] = stringsOf(call)
  return [
    {
      kind: 'written',
      file,
      offset: lastNumberOf(call),
      bytes: bytes.subarray(0, Number.parseInt(call.result, 10)),
      ...change,
    },
  ]
}

function entriesAfter(call: Call, files: Names): Relinked['entries'] {
  const [name, newName] = stringsOf(call).map((path) => files.nameOf(path.toString()))
  if (name === undefined && newName === undefined) return []
  const file = name === undefined ? undefined : files.find(name)
  if (/^(?:open|creat)/.test(call.name) && name !== undefined) {
    if (file !== undefined && call.args.includes('O_TRUNC')) throw unknown(call, name)
    return file === undefined ? [[name, files.create(name)]] : []
  }
  if (name === undefined || file === undefined) throw unknown(call, name)
  if (/^unlink/.test(call.name)) return [[name, undefined]]
  if (newName === undefined) throw unknown(call, name)
  return call.name.startsWith('rename')
    ? [
        [name, undefined],
        [newName, file],
      ]
    : [[newName, file]]
}

/** One call may send several answers. */
function answersIn(call: Call): readonly Answered[] {
  const sent = Buffer.concat(stringsOf(call)).toString('latin1')
  return sent.split(/(?=HTTP\/1\.1 \d)/).flatMap((answer) => {
    const requestId = /^HTTP\/1\.1 2.*?\r\nx-request-id: (\S+)/is.exec(answer)?.[1]
    return requestId === undefined ? [] : [{ kind: 'answered', requestId, at: call.begunAt }]
  })
}

const unknown = ({ name, args }: Call, file: string | undefined) =>
  new Error(`the effect of ${name} on ${file} is not known here: ${args.slice(0, 200)}`)

/** The path of the descriptor that is the first argument of a call. */
const pathOfDescriptor = ({ args }: Call): string => text(/^-?\w+<([^>]*)>/.exec(args)?.[1] ?? '')

/** The strings among the arguments: paths, or written bytes. */
const stringsOf = ({ args }: Call): Buffer[] =>
  [...args.matchAll(/"([^"]*)"(\.\.\.)?/g)].map(([, hex = '', isCut]) => {
    if (isCut !== undefined) throw new Error(`a call has more than ${MAX_TEXT_BYTES} bytes of text`)
    return bytes(hex)
  })

/** The last argument, which is a number. */
const lastNumberOf = ({ args }: Call): number => Number(/(?:^|, )(\d+)$/.exec(args)?.[1])

const bytes = (hex: string): Buffer => Buffer.from(hex.replaceAll('\\x', ''), 'hex')

const text = (name: string): string => (name.startsWith('\\x') ? bytes(name).toString() : name)
