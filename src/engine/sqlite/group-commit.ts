// Tested in test/engine/sqlite/thread.test.ts.
import type { Database } from 'bun:sqlite'
import { AppError, type ErrorKind, kindOf } from '../../error.ts'
import type { WriteResults } from '../group-queue.ts'
import { checkpoints } from './checkpoints.ts'
import { prepareCommit } from './commit.ts'
import { type Durability, openWriteConnection } from './driver.ts'
import { isLocked, isRefusedWrite, toEngineError } from './errors.ts'
import { markDamaged } from './files/damage-mark.ts'
import { fileIdentity } from './files/file-system.ts'
import { movedAway, watchFiles } from './files/moved-files.ts'
import {
  type CommittedGroup,
  type Failure,
  type ToWriter,
  toFailure,
  type WriterAnswer,
  type WriterCommand,
  type WriterReport,
} from './messages.ts'
import type { Call, Program, Writes } from './program.ts'
import { addChange, announceChanges, type ChangedSlots, type Changes, type CheckTime } from './versions.ts'

/** What the connection that writes needs to know. It is plain data, which a message to another thread can have. */
export interface GroupCommitOptions {
  readonly path: string
  /** The identity of the file that the store has opened. Writes to another file at the path would be lost. */
  readonly identity: string
  readonly durability: Durability
  readonly settings: unknown
  /** Announces here what a commit changes, its own or another process's. */
  readonly changes: Changes
}

/** A thread that reads, and asks for writes. */
export interface ReadingThread {
  readonly checkedAtMs: CheckTime
  readonly port: { postMessage(answer: WriterAnswer): void }
}

type ClientGroup = Extract<ToWriter, { group: unknown }> & { readonly thread: ReadingThread }

/**
 * Opens the connection that writes. Returns a function that takes the messages of threads, in their order. The groups among
 * them share a commit. `report` is called with what nobody has asked for. Throws SQLite's error, or an error that says that the
 * file was moved.
 */
export function openGroupCommit(program: Program, options: GroupCommitOptions, report: (report: WriterReport) => void) {
  const watched = openWatched(program, options)
  const announced = announceChanges(watched.writer, options.changes, watched.forget)
  const commitGroups = groupTransaction(program, watched, announced, options)
  const upkeep = openUpkeep(program, watched.writer, options, report)

  const checkOthers = ({ checkedAtMs }: ReadingThread, nowMs: number) => {
    try {
      announced.checkOthers(checkedAtMs, nowMs)
    } catch (error) {
      // Another process recovers the WAL at the moment. The reader will ask again.
      if (!isLocked(error)) throw error
    }
  }
  const commitAndAnswer = (groups: readonly ClientGroup[]) => {
    let done: Committed | { readonly failure: Failure }
    try {
      done = upkeep.failure === undefined ? commitGroups(groups) : { failure: upkeep.failure }
    } catch (error) {
      done = { failure: upkeep.reportFailure(toFailure(error)) }
    }
    for (const [index, { thread }] of groups.entries())
      thread.port.postMessage(
        'failure' in done ? done : { results: done.results[index], commit: index === 0 ? done.commit : undefined },
      )
    // After the answers, so that only the next groups wait for it.
    upkeep.checkpointIfDue(groups)
  }

  return (received: readonly (readonly [ReadingThread, ToWriter])[]): void => {
    const groups: ClientGroup[] = []
    for (const [thread, message] of received) {
      if ('group' in message) groups.push({ thread, ...message })
      else if ('checkOthersAtMs' in message) checkOthers(thread, message.checkOthersAtMs)
      else if ('failure' in message) upkeep.reportFailure(message.failure)
      else {
        // A thread gets its answers in the order of its messages.
        if (groups.length > 0) commitAndAnswer(groups.splice(0))
        thread.port.postMessage(upkeep.execute(message.command))
      }
    }
    if (groups.length > 0) commitAndAnswer(groups)
  }
}

/** What a commit has done: the results of each group, and the commit itself. */
interface Committed {
  readonly results: readonly (WriteResults | undefined)[]
  readonly commit: CommittedGroup['commit']
}

/** So many small writes add less than a MiB to the WAL. After a lone one, to ask for its size would take 17 µs of 280 µs. */
const SMALL_GROUPS_MAX = 32

/** Returns what the connection does beside its groups: it keeps the WAL short, executes commands, and remembers a failure. */
function openUpkeep(
  program: Program,
  writer: Database,
  { path, changes }: GroupCommitOptions,
  report: (report: WriterReport) => void,
) {
  const onWhole = () => void changes.checkpointedAtMs.fill(Date.now())
  const wal = checkpoints(writer, (error) => toEngineError(error, path), onWhole)
  /** The lone small writes since the last look at the size of the WAL. */
  let smallGroups = 0

  const keep = (found: Failure): Failure => {
    if (found.kind === 'store_failed') upkeep.failure ??= { ...found, outcomeIsUnknown: false }
    // Here, because the sync may hang, and other threads have to end the process all the same.
    if (found.isDamage === true) markDamaged(path)
    return found
  }
  const upkeep = {
    /** The first failure of the store. After it no write begins: a group may be on its way already when a checkpoint fails. */
    failure: undefined as Failure | undefined,
    /** Keeps a failure, and reports it if it is the first one. */
    reportFailure(found: Failure): Failure {
      const hadFailed = upkeep.failure !== undefined
      if (keep(found).kind === 'store_failed' && !hadFailed) report({ failure: found })
      return found
    },
    execute(command: WriterCommand): WriterAnswer {
      try {
        try {
          if (command !== 'discard') wal.run(command === 'truncate' ? 'truncate' : 'passive')
        } finally {
          if (command !== 'truncate') writer.close(true)
        }
        return 'done'
      } catch (error) {
        // Only who has given the command is told. The writes before it are done, but the WAL may keep what they have deleted.
        return { failure: { ...keep(toFailure(error)), outcomeIsUnknown: command === 'truncate' } }
      }
    },
    /** Brings a WAL that has grown into the database, after the commit of some groups. */
    checkpointIfDue([first, second]: readonly ClientGroup[]): void {
      const [call, another] = first?.group ?? []
      const isLone = second === undefined && another === undefined
      if (isLone && call !== undefined && program.isSmall(call) && ++smallGroups < SMALL_GROUPS_MAX) return
      smallGroups = 0
      try {
        const event = wal.runIfDue()
        if (event !== undefined) report({ event })
      } catch (error) {
        upkeep.reportFailure(toFailure(error))
      }
    },
  }
  return upkeep
}

/** Opens the connection, and watches whether its files stay at their paths. */
function openWatched(program: Program, { path, identity, durability, settings }: GroupCommitOptions) {
  if (fileIdentity(path) !== identity) throw movedAway(path)
  const { opened, areMoved } = watchFiles(path, () => {
    const writer = openWriteConnection(path, durability)
    // The queue waits for locks, so that this thread can do other things meanwhile.
    writer.run('pragma busy_timeout = 0')
    return { writer, ...program.open(writer, settings) }
  })
  return { ...opened, areMoved }
}

/** Returns a function that commits groups, or nothing of them. It throws an `AppError` if SQLite fails. */
function groupTransaction(
  program: Program,
  { writer, forget, writes, areMoved }: ReturnType<typeof openWatched>,
  announced: ReturnType<typeof announceChanges>,
  { path }: GroupCommitOptions,
) {
  const begin = writer.prepare('begin immediate')
  const commit = prepareCommit(writer, path)

  return function commitGroups(groups: readonly ClientGroup[], isRepeated = false): Committed {
    try {
      begin.run()
      for (const { thread, nowMs } of groups) announced.checkOthers(thread.checkedAtMs, nowMs)
      const changed: ChangedSlots = new Map()
      const results: (WriteResults | undefined)[] = []
      let count = 0
      for (const { group } of groups) {
        results.push(callAll(program, writes, group, changed))
        count += group.length
      }
      announced.begin(changed)
      const startMs = performance.now()
      try {
        commit()
      } finally {
        announced.end(changed)
      }
      const durationMs = performance.now() - startMs
      if (areMoved()) throw new AppError('store_failed', { outcomeIsUnknown: true, cause: movedAway(path) })
      return { results, commit: { writes: count, durationMs } }
    } catch (cause) {
      if (writer.inTransaction) writer.run('rollback')
      forget()
      const error = toEngineError(cause, path)
      // The disk refused the group but then took a file, so somebody may have made room in between.
      const mayHaveRoom = error instanceof AppError && error.kind === 'store_failed' && isRefusedWrite(error.cause)
      if (isRepeated || !mayHaveRoom) throw error
      return commitGroups(groups, true)
    }
  }
}

/** Calls the writes of a group, and adds what they change to `changed`. Returns nothing if all were done and returned nothing. */
function callAll(
  program: Program,
  writes: Writes,
  group: readonly Call[],
  changed: ChangedSlots,
): WriteResults | undefined {
  const refused: [index: number, kind: ErrorKind, message: string][] = []
  const returned: [index: number, value: unknown][] = []
  for (const [index, call] of group.entries()) {
    const [name, ...args] = call
    try {
      const value = Reflect.apply(writes[name] as (...args: readonly unknown[]) => unknown, undefined, args)
      if (value !== undefined) returned.push([index, value])
      addChange(changed, program.invalidates(call))
    } catch (error) {
      const kind = kindOf(error)
      if (kind === undefined) throw error
      refused.push([index, kind, (error as Error).message])
    }
  }
  return refused.length === 0 && returned.length === 0 ? undefined : { refused, returned }
}
