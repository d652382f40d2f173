import { AppError } from '../../domain/error.ts'
import type { Durability } from '../../domain/store.ts'
import { checkpoints } from './checkpoints.ts'
import { prepareCommit } from './commit.ts'
import { openWriter } from './connection.ts'
import { isRefusedWrite, toAppError } from './errors.ts'
import { watchFiles } from './files/moved-files.ts'
import { fileIdentity } from './files/preflight.ts'
import { type CheckpointReport, type Failure, type GroupResult, toFailure, type WriteResults } from './group-result.ts'
import { type LastCommit, noteCommitMs } from './versions/last-commit.ts'
import { watchOwnCommits } from './versions/own-commits.ts'
import { watchWalIndex } from './versions/wal-index.ts'
import { type Call, CHANGES_NO_ROW, createWrites } from './writes.ts'

/** What performs writes, on a connection of its own, in the thread that it was opened in. */
export type GroupWriter = ReturnType<typeof openGroupWriter>

/** What a writer needs to know. */
export interface WriterOptions {
  readonly path: string
  /** The file at that path that the store has opened: what is written into another one is written nowhere. */
  readonly identity: string
  readonly durability: Durability
  /** Where a commit is announced, and its duration and the stamps around it are put as soon as it is done. */
  readonly lastCommit: LastCommit
}

/** Opens the connection that writes. Throws what SQLite says, or that the file is not the same any more. */
export function openGroupWriter({ path, identity, durability, lastCommit }: WriterOptions) {
  if (fileIdentity(path) !== identity) throw lost(path)
  const { opened, areLost } = watchFiles(path, () => {
    const writer = openWriter(path, durability, { create: false })
    // A lock is waited for by whoever sends the group, who goes on with other things meanwhile.
    writer.run('pragma busy_timeout = 0')
    return { writer, writes: createWrites(writer) }
  })
  const { writer, writes } = opened
  const begin = writer.prepare('begin immediate')
  const commit = prepareCommit(writer)
  const walIndex = watchWalIndex(path)
  const ownCommits = walIndex && watchOwnCommits(writer, walIndex, lastCommit)
  const wal = checkpoints(writer, walIndex, (error) => toAppError(error, { duringWrite: false, path }))
  /** Nothing is written after it, although a group may be on its way already when a checkpoint fails. */
  let failure: Failure | undefined

  const performAll = (group: readonly Call[]): GroupResult => {
    begin.run()
    ownCommits?.begin()
    const outcomes = callAll(writes, group)
    ownCommits?.end({ changesNoRow: group.some(([name]) => name === CHANGES_NO_ROW) })
    const startMs = performance.now()
    commit()
    ownCommits?.noteCommitted()
    noteCommitMs(lastCommit, performance.now() - startMs)
    if (areLost()) throw new AppError('store_failed', { outcomeIsUnknown: true, cause: lost(path) })
    return outcomes.refused.length === 0 && outcomes.returned.length === 0 ? 'done' : outcomes
  }
  /** Does a group, or nothing of it. Throws in the store's terms. */
  const performOnce = (group: readonly Call[], isRepeated = false): GroupResult => {
    try {
      return performAll(group)
    } catch (cause) {
      ownCommits?.noteFailed()
      if (writer.inTransaction) writer.run('rollback')
      const error = toAppError(cause, { duringWrite: true, path })
      // The disk took a file after it had refused the group: somebody may have made room between.
      if (!isRepeated && isRefusedWrite(cause) && isFailure(error)) return performOnce(group, true)
      throw error
    }
  }
  const fail = (error: unknown): Failure => {
    const noted = toFailure(error)
    if (noted.kind === 'store_failed') failure = { ...noted, outcomeIsUnknown: false }
    return noted
  }
  const attempt = (work: () => void): Failure | undefined => {
    try {
      work()
    } catch (error) {
      return fail(error)
    }
  }

  return {
    /** Does a group of writes in one transaction with one sync: each is done or refused by itself. */
    perform(group: readonly Call[]): GroupResult {
      if (failure !== undefined) return { failure }
      try {
        return performOnce(group)
      } catch (error) {
        return { failure: fail(error) }
      }
    },
    /** Brings a WAL that has grown into the database. */
    checkpointIfDue(): CheckpointReport | undefined {
      try {
        const event = wal.runIfDue()
        return event && { event }
      } catch (error) {
        return { failure: fail(error) }
      }
    },
    /** Empties the WAL, unless somebody is in the way. Returns why that failed, if it did. */
    truncate: () => attempt(() => wal.run('truncate')),
    /** Ends the connection, after the WAL was brought into the database. Returns why that failed, if it did. */
    close() {
      const failure = attempt(() => wal.run('passive'))
      writer.close(true)
      return failure
    },
    /** Ends the connection and leaves the files as they are: the next start recovers from them. */
    discard(): undefined {
      writer.close(true)
    },
  }
}

function callAll(writes: ReturnType<typeof createWrites>, group: readonly Call[]): WriteResults {
  const refused: WriteResults['refused'][number][] = []
  const returned: WriteResults['returned'][number][] = []
  for (let index = 0; index < group.length; index++) {
    const [name, ...args] = group[index] as Call
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

const isFailure = (error: unknown): boolean => error instanceof AppError && error.kind === 'store_failed'

const lost = (path: string) => new Error(`${path}, or a file beside it, was moved, replaced or deleted`)
