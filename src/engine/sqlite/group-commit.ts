import { AppError, type ErrorKind } from '../../domain/error.ts'
import { openQuota } from '../../store/sqlite/writing/quota.ts'
import { type Call, createWrites, type Writes } from '../../store/sqlite/writing/writes.ts'
import type { WriteResults } from '../group-queue.ts'
import { checkpoints } from './checkpoints.ts'
import { prepareCommit } from './commit.ts'
import { type FileDurability, openWriter } from './driver.ts'
import { isLocked, isRefusedWrite, toAppError } from './errors.ts'
import { fileIdentity } from './files/file-system.ts'
import { movedAway, watchFiles } from './files/moved-files.ts'
import {
  type Answer,
  type Committed,
  type Failure,
  type Message,
  type Order,
  type Report,
  toFailure,
} from './messages.ts'
import { announceChanges, type Changes, type CheckTime } from './versions.ts'

/** What the connection that writes needs to know. */
export interface GroupCommitOptions {
  readonly path: string
  /** The identity of the file that the store has opened. Writes to another file at the path would be lost. */
  readonly identity: string
  readonly durability: FileDurability
  readonly quotaPlants?: number | undefined
  /** Announces here what a commit changes, its own or another process's. */
  readonly changes: Changes
}

/** A thread that reads, and asks for writes. */
export interface Client {
  readonly checkedAtMs: CheckTime
  readonly port: { postMessage(answer: Answer): void }
}

/** A group of writes of a client. */
type Asked = Extract<Message, { group: unknown }> & { readonly client: Client }

/**
 * Opens the connection that writes. Returns a function that takes messages. The groups among them share a commit. Throws SQLite's
 * error, or an error that says that the file was moved.
 */
export function openGroupCommit(options: GroupCommitOptions, report: (report: Report) => void) {
  const { path, changes } = options
  const watched = openWatched(options)
  const { writer, quota } = watched
  const announced = announceChanges(writer, changes, quota?.forget)
  const commitGroups = groupTransaction(watched, announced, options)
  const onWhole = () => void changes.checkpointedAtMs.fill(Date.now())
  const wal = checkpoints(writer, (error) => toAppError(error, path), onWhole)
  /** The small groups since the last look at the size of the WAL. */
  let smallGroups = 0
  /** After it no write begins. A group may be on its way already when a checkpoint fails. */
  let failure: Failure | undefined

  const fail = (found: Failure, tell = report): Failure => {
    if (found.kind === 'store_failed' && failure === undefined) {
      failure = { ...found, outcomeIsUnknown: false }
      tell({ failure: found })
    }
    return found
  }
  const checkOthers = ({ checkedAtMs }: Client, nowMs: number) => {
    try {
      announced.checkOthers(checkedAtMs, nowMs)
    } catch (error) {
      // Another process recovers the WAL at the moment. The reader will ask again.
      if (!isLocked(error)) throw error
    }
  }
  const obey = (order: Order): Answer => {
    try {
      try {
        if (order !== 'discard') wal.run(order === 'truncate' ? 'truncate' : 'passive')
      } finally {
        if (order !== 'truncate') writer.close(true)
      }
      return 'done'
    } catch (error) {
      // Only who has given the order is told. The writes before it are done, but the WAL may keep what they have deleted.
      return { failure: { ...fail(toFailure(error), () => {}), outcomeIsUnknown: order === 'truncate' } }
    }
  }
  /** Brings a WAL that has grown into the database. */
  const checkpointIfDue = ([asked, another]: readonly Asked[]) => {
    if (another === undefined && isSmall(asked?.group ?? []) && ++smallGroups < SMALL_GROUPS_MAX) return
    smallGroups = 0
    try {
      const event = wal.runIfDue()
      if (event !== undefined) report({ event })
    } catch (error) {
      fail(toFailure(error))
    }
  }
  const commitAsked = (asked: readonly Asked[]) => {
    let answers: readonly Committed[] | { readonly failure: Failure }
    try {
      answers = failure === undefined ? commitGroups(asked) : { failure }
    } catch (error) {
      answers = { failure: fail(toFailure(error)) }
    }
    for (const [index, { client }] of asked.entries())
      client.port.postMessage('failure' in answers ? answers : (answers[index] as Committed))
    // After the answers, so that only the next groups wait for it.
    checkpointIfDue(asked)
  }

  return (received: readonly (readonly [Client, Message])[]): void => {
    const asked: Asked[] = []
    for (const [client, message] of received) {
      if ('group' in message) asked.push({ client, ...message })
      else if ('checkOthersAtMs' in message) checkOthers(client, message.checkOthersAtMs)
      else if ('failure' in message) fail(message.failure)
      else {
        // A client gets its answers in the order of its messages.
        if (asked.length > 0) commitAsked(asked.splice(0))
        client.port.postMessage(obey(message.order))
      }
    }
    if (asked.length > 0) commitAsked(asked)
  }
}

/** So many lone creates and puts of short plants together write less than a MiB to the WAL. */
const SMALL_GROUPS_MAX = 32
const SMALL_PLANT_LENGTH = 1024

/** After a lone create or put, to ask for the size of the WAL would take 17 µs of the 280 µs. */
const isSmall = ([call, another]: readonly Call[]): boolean =>
  (call?.[0] === 'createPlant' || call?.[0] === 'putPlant') &&
  another === undefined &&
  call.join('').length <= SMALL_PLANT_LENGTH

/** Opens the connection, and watches whether its files stay at their paths. */
function openWatched({ path, identity, durability, quotaPlants }: GroupCommitOptions) {
  if (fileIdentity(path) !== identity) throw movedAway(path)
  const { opened, areMoved } = watchFiles(path, () => {
    const writer = openWriter(path, durability)
    // The queue waits for locks, so that this thread can do other things meanwhile.
    writer.run('pragma busy_timeout = 0')
    const quota = quotaPlants === undefined ? undefined : openQuota(writer, quotaPlants)
    return { writer, quota, writes: createWrites(writer, quota) }
  })
  return { ...opened, areMoved }
}

/**
 * Returns a function that commits groups, or nothing of them. It returns the answer to each. It throws an `AppError` if SQLite fails.
 */
function groupTransaction(
  { writer, quota, writes, areMoved }: ReturnType<typeof openWatched>,
  announced: ReturnType<typeof announceChanges>,
  { path }: GroupCommitOptions,
) {
  const begin = writer.prepare('begin immediate')
  const commit = prepareCommit(writer, path)

  return function commitGroups(asked: readonly Asked[], isRepeated = false): readonly Committed[] {
    try {
      begin.run()
      for (const { client, nowMs } of asked) announced.checkOthers(client.checkedAtMs, nowMs)
      const answers: Committed[] = []
      let count = 0
      for (const { group } of asked) {
        const results = callAll(writes, group)
        answers.push({ writes: 0, commitMs: 0, ...(results !== undefined && { results }) })
        count += group.length
      }
      const changed = announced.begin(asked, answers)
      const startMs = performance.now()
      try {
        commit()
      } finally {
        announced.end(changed)
      }
      const commitMs = performance.now() - startMs
      if (areMoved()) throw new AppError('store_failed', { outcomeIsUnknown: true, cause: movedAway(path) })
      return answers.with(0, { ...(answers[0] as Committed), writes: count, commitMs })
    } catch (cause) {
      if (writer.inTransaction) writer.run('rollback')
      quota?.forget()
      const error = toAppError(cause, path)
      // The disk refused the group but then took a file, so somebody may have made room in between.
      const mayHaveRoom = error instanceof AppError && error.kind === 'store_failed' && isRefusedWrite(error.cause)
      if (isRepeated || !mayHaveRoom) throw error
      return commitGroups(asked, true)
    }
  }
}

/** Calls the writes of a group. Returns nothing if all of them were done and returned nothing. */
function callAll(writes: Writes, group: readonly Call[]): WriteResults | undefined {
  const refused: [index: number, kind: ErrorKind, message: string][] = []
  const returned: [index: number, value: unknown][] = []
  for (const [index, [name, ...args]] of group.entries()) {
    try {
      const value = Reflect.apply(writes[name], undefined, args)
      if (value !== undefined) returned.push([index, value])
    } catch (error) {
      if (!(error instanceof AppError)) throw error
      refused.push([index, error.kind, error.message])
    }
  }
  return refused.length === 0 && returned.length === 0 ? undefined : { refused, returned }
}
