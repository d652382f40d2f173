import { AppError, type ErrorKind } from '../../../domain/error.ts'
import { type FileDurability, openWriter } from '../driver.ts'
import { isLocked, isRefusedWrite, toAppError } from '../errors.ts'
import { fileIdentity } from '../files/file-system.ts'
import { movedAway, watchFiles } from '../files/moved-files.ts'
import { announceChanges, type Changes } from '../versions.ts'
import { checkpoints } from './checkpoints.ts'
import { prepareCommit } from './commit.ts'
import { type Answer, type Failure, type Message, type Order, type Sent, toFailure } from './messages.ts'
import { openQuota } from './quota.ts'
import { type Call, createWrites, type Writes } from './writes.ts'

/** What the connection that writes needs to know. */
export interface GroupCommitOptions {
  readonly path: string
  /** The identity of the file that the store has opened. Writes to another file at the path would be lost. */
  readonly identity: string
  readonly durability: FileDurability
  readonly quotaPlants?: number | undefined
  /** Announces here what a commit changes, its own or another process's. */
  readonly changes: Changes
  /** Has `COMMIT_MS` and `CHECKPOINTED_AT_MS`. */
  readonly times: Float64Array<SharedArrayBuffer>
}

/** The indexes of the duration of the last commit, and of the Unix time at which a checkpoint last brought the whole WAL into the database. */
export const [COMMIT_MS, CHECKPOINTED_AT_MS] = [0, 1]

/**
 * Opens the connection that writes. Returns a function that takes messages as JSON, and `send` gets the answers. Throws SQLite's
 * error, or an error that says that the file was moved.
 */
export function openGroupCommit(options: GroupCommitOptions, send: (sent: Sent) => void): (message: string) => void {
  const { path, times } = options
  const watched = openWatched(options)
  const { writer, quota } = watched
  const announced = announceChanges(writer, options.changes, quota?.forget)
  const commitGroup = groupTransaction(watched, announced, options)
  const onWhole = () => void times.fill(Date.now(), CHECKPOINTED_AT_MS)
  const wal = checkpoints(writer, (error) => toAppError(error, path), onWhole)
  /** The small groups since the last look at the size of the WAL. */
  let smallGroups = 0
  /** After it no write begins. A group may be on its way already when a checkpoint fails. */
  let failure: Failure | undefined

  const recordFailure = (error: unknown): Failure => {
    const found = toFailure(error)
    if (found.kind === 'store_failed') failure = { ...found, outcomeIsUnknown: false }
    return found
  }
  const checkOthers = (nowMs: number) => {
    try {
      announced.checkOthers(nowMs)
    } catch (error) {
      // Another process recovers the WAL at the moment. The reader will ask again.
      if (!isLocked(error)) throw error
    }
  }
  const obey = (order: Order): Answer => {
    try {
      if (order !== 'discard') wal.run(order === 'truncate' ? 'truncate' : 'passive')
      return 'done'
    } finally {
      if (order !== 'truncate') writer.close(true)
    }
  }
  /** Brings a WAL that has grown into the database. */
  const checkpointIfDue = (group: readonly Call[]) => {
    if (isSmall(group) && ++smallGroups < SMALL_GROUPS_MAX) return
    smallGroups = 0
    try {
      const event = wal.runIfDue()
      if (event !== undefined) send({ report: { event } })
    } catch (error) {
      send({ report: { failure: recordFailure(error) } })
    }
  }

  return (text) => {
    // `openWriter` of writer.ts has made the text.
    const message = JSON.parse(text) as Message
    if ('checkOthersAtMs' in message) return checkOthers(message.checkOthersAtMs)
    try {
      if ('order' in message) send(obey(message.order))
      else send(failure === undefined ? commitGroup(message.group, message.nowMs) : { failure })
    } catch (error) {
      send({ failure: recordFailure(error) })
    }
    // After the answer, so that only the next group waits for it.
    if ('group' in message) checkpointIfDue(message.group)
  }
}

/** So many lone creates of short plants together write less than a MiB to the WAL. */
const SMALL_GROUPS_MAX = 32
const SMALL_PLANT_LENGTH = 1024

/** After a lone create, to ask for the size of the WAL would take 17 µs of the 280 µs. */
const isSmall = ([call, another]: readonly Call[]): boolean =>
  call?.[0] === 'createPlant' && another === undefined && call.join('').length <= SMALL_PLANT_LENGTH

/** Opens the connection, and watches whether its files stay at their paths. */
function openWatched({ path, identity, durability, quotaPlants }: GroupCommitOptions) {
  if (fileIdentity(path) !== identity) throw movedAway(path)
  const { opened, areMoved } = watchFiles(path, () => {
    const writer = openWriter(path, durability, { create: false })
    // The queue waits for locks, so that this thread can do other things meanwhile.
    writer.run('pragma busy_timeout = 0')
    const quota = quotaPlants === undefined ? undefined : openQuota(writer, quotaPlants)
    return { writer, quota, writes: createWrites(writer, quota) }
  })
  return { ...opened, areMoved }
}

/** Returns a function that commits a group, or nothing of it. It throws an `AppError` if SQLite fails. */
function groupTransaction(
  { writer, quota, writes, areMoved }: ReturnType<typeof openWatched>,
  announced: ReturnType<typeof announceChanges>,
  { path, times }: GroupCommitOptions,
) {
  const begin = writer.prepare('begin immediate')
  const commit = prepareCommit(writer)

  return function commitGroup(group: readonly Call[], nowMs: number, isRepeated = false): Answer {
    try {
      begin.run()
      announced.checkOthers(nowMs)
      const answer = callAll(writes, group)
      const changed = announced.begin(group)
      const startMs = performance.now()
      try {
        commit()
      } finally {
        announced.end(changed)
      }
      times[COMMIT_MS] = performance.now() - startMs
      if (areMoved()) throw new AppError('store_failed', { outcomeIsUnknown: true, cause: movedAway(path) })
      return answer
    } catch (cause) {
      if (writer.inTransaction) writer.run('rollback')
      quota?.forget()
      const error = toAppError(cause, path, { duringWrite: true })
      // The disk refused the group but then took a file, so somebody may have made room in between.
      const mayHaveRoom = isRefusedWrite(cause) && error instanceof AppError && error.kind === 'store_failed'
      if (isRepeated || !mayHaveRoom) throw error
      return commitGroup(group, nowMs, true)
    }
  }
}

function callAll(writes: Writes, group: readonly Call[]): Answer {
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
  return refused.length === 0 && returned.length === 0 ? 'done' : { refused, returned }
}
