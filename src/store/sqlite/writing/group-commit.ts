import { AppError } from '../../../domain/error.ts'
import { type FileDurability, openWriter } from '../driver.ts'
import { isLocked, isRefusedWrite, toAppError } from '../errors.ts'
import { fileIdentity } from '../files/file-system.ts'
import { movedAway, watchFiles } from '../files/moved-files.ts'
import { announceChanges, type Changes } from '../versions.ts'
import { checkpoints } from './checkpoints.ts'
import { prepareCommit } from './commit.ts'
import { openQuota } from './quota.ts'
import {
  type Call,
  type CheckpointReport,
  createWrites,
  type Failure,
  type GroupResult,
  toFailure,
  type WriteResults,
  type Writes,
} from './writes.ts'

/** What a writer needs to know. */
export interface WriterOptions {
  readonly path: string
  /** The identity of the file that the store has opened. Writes to another file at the path would be lost. */
  readonly identity: string
  readonly durability: FileDurability
  readonly quotaPlants?: number | undefined
  /** The writer announces here what a commit changes, its own or another process's. */
  readonly changes: Changes
  /** The writer puts times here, at these places. */
  readonly times: Float64Array<SharedArrayBuffer>
}

/** The duration of the last commit, and when a checkpoint last brought the whole WAL into the database, since 1970-01-01 UTC. */
export const [COMMIT_MS, CHECKPOINTED_AT_MS] = [0, 1]

/** Commits groups on a connection of its own, in the thread that opened it. */
export type GroupWriter = ReturnType<typeof openGroupWriter>

/** Opens the connection that writes. Throws SQLite's error, or an error that says that the file was moved. */
export function openGroupWriter(options: WriterOptions) {
  const { path, times } = options
  const connection = openWatched(options)
  const { writer, quota } = connection
  const announced = announceChanges(writer, options.changes, quota?.forget)
  const commitGroup = groupTransaction(connection, announced, options)
  const onWhole = () => void times.fill(Date.now(), CHECKPOINTED_AT_MS)
  const wal = checkpoints(writer, (error) => toAppError(error, path), onWhole)
  /** The small groups since the last look at the size of the WAL. */
  let smallGroups = 0
  /** After it no write begins. A group may be on its way already when a checkpoint fails. */
  let failure: Failure | undefined

  const attempt = <T>(work: () => T): T | { readonly failure: Failure } => {
    try {
      return work()
    } catch (error) {
      const failed = toFailure(error)
      if (failed.kind === 'store_failed') failure = { ...failed, outcomeIsUnknown: false }
      return { failure: failed }
    }
  }
  const checkpoint = (mode: 'passive' | 'truncate'): Failure | undefined => attempt(() => void wal.run(mode))?.failure

  return {
    /** Commits a group of writes in one transaction with one sync. Each write is done or refused by itself. */
    perform: (group: readonly Call[], nowMs: number): GroupResult =>
      failure === undefined ? attempt(() => commitGroup(group, nowMs)) : { failure },
    /** Looks for commits of other processes. */
    checkOthers(nowMs: number): void {
      try {
        announced.checkOthers(nowMs)
      } catch (error) {
        // Another process recovers the WAL at the moment. The reader will ask again.
        if (!isLocked(error)) throw error
      }
    },
    /** Brings a WAL that has grown into the database. Called after each group. */
    checkpointIfDue(group: readonly Call[]): CheckpointReport | undefined {
      if (isSmall(group) && ++smallGroups < SMALL_GROUPS_MAX) return undefined
      smallGroups = 0
      return attempt(() => {
        const event = wal.runIfDue()
        return event && { event }
      })
    },
    /** Empties the WAL, unless another process reads it. Returns the failure, if there is one. */
    truncate: () => checkpoint('truncate'),
    /** Brings the WAL into the database and ends the connection. Returns the failure, if there is one. */
    close(): Failure | undefined {
      const failed = checkpoint('passive')
      writer.close(true)
      return failed
    },
    /** Ends the connection and leaves the files as they are: the next start recovers from them. */
    discard(): undefined {
      writer.close(true)
    },
  }
}

/** Small groups are a few creates of short plants. So many of them together write less than a MiB to the WAL. */
const SMALL_GROUP_WRITES = 4
const SMALL_PLANT_LENGTH = 1024
const SMALL_GROUPS_MAX = 16

/** After a lone create, to ask for the size of the WAL would take 17 µs of the 280 µs. */
const isSmall = (group: readonly Call[]): boolean =>
  group.length <= SMALL_GROUP_WRITES &&
  group.every(([name, , , ...texts]) => name === 'createPlant' && texts.join('').length <= SMALL_PLANT_LENGTH)

/** Opens the connection, and watches whether its files stay at their paths. */
function openWatched({ path, identity, durability, quotaPlants }: WriterOptions) {
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
  { path, times }: WriterOptions,
) {
  const begin = writer.prepare('begin immediate')
  const commit = prepareCommit(writer)

  const commitOnce = (group: readonly Call[], nowMs: number): GroupResult => {
    begin.run()
    announced.checkOthers(nowMs)
    const results = callAll(writes, group)
    const changed = announced.begin(group)
    const startMs = performance.now()
    try {
      commit()
    } finally {
      announced.end(changed)
    }
    times[COMMIT_MS] = performance.now() - startMs
    if (areMoved()) throw new AppError('store_failed', { outcomeIsUnknown: true, cause: movedAway(path) })
    return results.refused.length === 0 && results.returned.length === 0 ? 'done' : results
  }

  return (group: readonly Call[], nowMs: number): GroupResult => {
    for (let isRepeated = false; ; isRepeated = true) {
      try {
        return commitOnce(group, nowMs)
      } catch (cause) {
        if (writer.inTransaction) writer.run('rollback')
        quota?.forget()
        const error = toAppError(cause, path, { duringWrite: true })
        const isFailure = error instanceof AppError && error.kind === 'store_failed'
        // The disk refused the group but then took a file, so somebody may have made room in between.
        const mayHaveRoom = isRefusedWrite(cause) && isFailure
        if (isRepeated || !mayHaveRoom) throw error
      }
    }
  }
}

function callAll(writes: Writes, group: readonly Call[]): WriteResults {
  const refused: WriteResults['refused'][number][] = []
  const returned: WriteResults['returned'][number][] = []
  for (const [index, [name, ...args]] of group.entries()) {
    try {
      const value = Reflect.apply(writes[name], undefined, args)
      if (value !== undefined) returned.push([index, value])
    } catch (error) {
      if (!(error instanceof AppError)) throw error
      refused.push([index, error.kind, error.message])
    }
  }
  return { refused, returned }
}
