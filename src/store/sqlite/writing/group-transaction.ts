import type { Database } from 'bun:sqlite'
import { AppError } from '../../../domain/error.ts'
import { isRefusedWrite, toAppError } from '../errors.ts'
import type { announceChanges } from '../versions.ts'
import { prepareCommit } from './commit.ts'
import type { GroupResult, WriteResults } from './group-result.ts'
import type { Call, Writes } from './writes.ts'

/** The connection that writes. */
interface WriterConnection {
  readonly writer: Database
  readonly writes: Writes
  /** Whether a file of the database is not at its path any more. */
  readonly areMoved: () => boolean
}

interface TransactionOptions {
  readonly path: string
  /** Gets the duration of each commit. */
  readonly commitMs: Float64Array<SharedArrayBuffer>
}

/** Returns a function that commits a group, or nothing of it. It throws an `AppError` if SQLite fails. */
export function groupTransaction(
  { writer, writes, areMoved }: WriterConnection,
  announced: ReturnType<typeof announceChanges>,
  { path, commitMs }: TransactionOptions,
) {
  const begin = writer.prepare('begin immediate')
  const commit = prepareCommit(writer)

  const commitOnce = (group: readonly Call[], nowMs: number): GroupResult => {
    begin.run()
    announced.checkOthers(nowMs)
    const results = callAll(writes, group)
    const endChanges = announced.begin(group)
    const startMs = performance.now()
    try {
      commit()
    } finally {
      endChanges()
    }
    commitMs[0] = performance.now() - startMs
    if (areMoved()) throw new AppError('store_failed', { outcomeIsUnknown: true, cause: movedAway(path) })
    return results.refused.length === 0 && results.returned.length === 0 ? 'done' : results
  }

  return (group: readonly Call[], nowMs: number): GroupResult => {
    for (let isRepeated = false; ; isRepeated = true) {
      try {
        return commitOnce(group, nowMs)
      } catch (cause) {
        if (writer.inTransaction) writer.run('rollback')
        const error = toAppError(cause, { duringWrite: true, path })
        // The disk refused the group but then took a file, so somebody may have made room in between.
        const mayHaveRoom = isRefusedWrite(cause) && isFailure(error)
        if (isRepeated || !mayHaveRoom) throw error
      }
    }
  }
}

function callAll(writes: Writes, group: readonly Call[]): WriteResults {
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

/** The error of a database whose file is not at its path any more. */
export const movedAway = (path: string) => new Error(`${path}, or a file beside it, was moved, replaced or deleted`)
