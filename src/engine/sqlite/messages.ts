// Tested in test/engine/sqlite/thread.test.ts.
import { AppError, type ErrorKind } from '../../error.ts'
import type { WriteResults } from '../group-queue.ts'
import type { EngineEvent } from '../observer.ts'
import { isDamage } from './errors.ts'
import type { Call } from './program.ts'

/**
 * A message to the thread that writes, as JSON: a text travels between threads for a third of the CPU time of an object. The
 * thread answers groups and orders, one by one. `nowMs` is from the clock of the store.
 */
export type ToWriter =
  /** Commits a group of writes in one transaction with one sync. Each write is done or refused by itself. */
  | { readonly group: readonly Call[]; readonly nowMs: number }
  /** Looks for commits of other processes. It has no answer. */
  | { readonly checkOthersAtMs: number }
  /** The thread has found the database damaged, so that no write may begin any more. It has no answer. */
  | { readonly failure: Failure }
  | { readonly command: WriterCommand }

/**
 * `truncate` empties the WAL, unless another process reads it. `close` brings the WAL into the database and ends the connection.
 * `discard` ends it and leaves the files as they are: the next start recovers from them.
 */
export type WriterCommand = 'truncate' | 'close' | 'discard'

/** Why a group, a command or a checkpoint failed: plain data, because no `AppError` survives the way between threads. */
export interface Failure {
  /** `bug` if the error does not come from the database. */
  readonly kind: ErrorKind
  readonly outcomeIsUnknown: boolean
  readonly reason: string
  readonly isDamage?: boolean
}

/** An answer `done`: a command was done, or every write of a group was done and returned nothing. */
export type WriterAnswer = 'done' | CommittedGroup | { readonly failure: Failure }

/** A group was committed. Without results, every write was done and returned nothing. */
export interface CommittedGroup {
  readonly results: WriteResults | undefined
  /** How many writes the commit had, and how long it took. Of the threads whose groups shared it, only one is told. */
  readonly commit: { readonly writes: number; readonly durationMs: number } | undefined
}

/** What the thread that opened the store is told without having asked: the first failure, and what a checkpoint found. */
export type WriterReport = { readonly failure: Failure } | { readonly event: EngineEvent }

export type FromWriter = WriterAnswer | { readonly report: WriterReport }

export function toFailure(error: unknown): Failure {
  if (!(error instanceof AppError)) return { kind: 'bug', outcomeIsUnknown: false, reason: Bun.inspect(error) }
  const { kind, outcomeIsUnknown, cause } = error
  return { kind, outcomeIsUnknown, reason: String(cause), isDamage: isDamage(cause) }
}

/** Makes an error of a failure: an `AppError`, or another error if it is a bug. */
export const toError = ({ kind, outcomeIsUnknown, reason }: Failure): Error =>
  kind === 'bug' ? new Error(reason) : new AppError(kind, { outcomeIsUnknown, cause: reason })
