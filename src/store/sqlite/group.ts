import { AppError, type ErrorKind } from '../../domain/error.ts'
import type { Durability } from '../../domain/store.ts'
import { checkpoints } from './checkpoints.ts'
import { openWriter } from './connection.ts'
import { toAppError } from './errors.ts'
import { fileIdentity } from './inspect.ts'
import { type LastCommit, noteCommit } from './revisions.ts'
import { watchWalIndex } from './wal-index.ts'
import { type Call, createWrites } from './writes.ts'

/** Why a group or a checkpoint failed, as plain data: an error of ours does not travel between threads. */
export interface Failure {
  /** `bug` where it is no error of the database's. */
  readonly kind: ErrorKind
  readonly outcomeIsUnknown: boolean
  readonly reason: string
}

/** What became of the writes of a group, by their place in it. One that is not named was done and returned nothing. */
export interface Outcomes {
  readonly refused: readonly (readonly [index: number, kind: ErrorKind, message: string])[]
  readonly returned: readonly (readonly [index: number, value: unknown])[]
}

/**
 * Either each write of a group was done or refused, durably, or all of it failed. `done` is the usual case, that every
 * write was done and returned nothing: a text travels between threads in half the time.
 */
export type Report = 'done' | Outcomes | { readonly failure: Failure }

/** What performs writes, on a connection of its own, in the thread that it was opened in. */
export type GroupWriter = ReturnType<typeof openGroupWriter>

/** What a writer needs to know. */
export interface WriterOptions {
  readonly path: string
  /** The file at that path that the store has opened: what is written into another one is written nowhere. */
  readonly identity: string | undefined
  readonly durability: Durability
  /** Where the stamps around a commit are put, as soon as it is done; nothing where there are none. */
  readonly lastCommit: LastCommit
}

/** Opens the connection that writes. Throws what SQLite says, or that the file is not the same any more. */
export function openGroupWriter({ path, identity, durability, lastCommit }: WriterOptions) {
  const isSameFile = () => fileIdentity(path) === identity
  if (!isSameFile()) throw lost(path)
  const writer = openWriter(path, durability, { create: false })
  // A lock is waited for by whoever sends the group, who goes on with other things meanwhile.
  writer.run('pragma busy_timeout = 0')
  const writes = createWrites(writer)
  const begin = writer.prepare('begin immediate')
  const commit = writer.prepare('commit')
  const walIndex = watchWalIndex(path)
  const wal = checkpoints(writer, walIndex, (error) => toAppError(error, { duringWrite: false, path }))

  const performAll = (group: readonly Call[]): Report => {
    begin.run()
    const before = walIndex?.stamp()
    const outcomes = callAll(writes, group)
    commit.run()
    if (before !== undefined && walIndex !== undefined) noteCommit(lastCommit, before, walIndex.stamp())
    if (!isSameFile()) throw new AppError('store_failed', { outcomeIsUnknown: true, cause: lost(path) })
    return outcomes.refused.length === 0 && outcomes.returned.length === 0 ? 'done' : outcomes
  }
  const attempt = (work: () => void): Failure | undefined => {
    try {
      work()
    } catch (error) {
      return toFailure(error)
    }
  }

  return {
    /** Does a group of writes in one transaction with one sync: each is done or refused by itself. */
    perform(group: readonly Call[]): Report {
      try {
        return performAll(group)
      } catch (error) {
        if (writer.inTransaction) writer.run('rollback')
        return { failure: toFailure(toAppError(error, { duringWrite: true, path })) }
      }
    },
    /** Brings a WAL that has grown into the database. Returns why that failed, if it did. */
    checkpointIfDue: () => attempt(wal.runIfDue),
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

function callAll(writes: ReturnType<typeof createWrites>, group: readonly Call[]): Outcomes {
  const refused: Outcomes['refused'][number][] = []
  const returned: Outcomes['returned'][number][] = []
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

/** The failure as an error again: of the store's terms, or a bug. */
export const toError = ({ kind, outcomeIsUnknown, reason }: Failure): Error =>
  kind === 'bug' ? new Error(reason) : new AppError(kind, { outcomeIsUnknown, cause: reason })

function toFailure(error: unknown): Failure {
  if (!(error instanceof AppError)) return { kind: 'bug', outcomeIsUnknown: false, reason: Bun.inspect(error) }
  return { kind: error.kind, outcomeIsUnknown: error.outcomeIsUnknown, reason: String(error.cause) }
}

const lost = (path: string) => new Error(`${path} was moved, replaced or deleted`)
