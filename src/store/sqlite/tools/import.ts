import { AppError } from '../../../domain/error.ts'
import type { OwnedPlant, PlantImport } from '../../../domain/transfer.ts'
import { openReader } from '../connection.ts'
import { toAppError } from '../errors.ts'
import { type ImportWriter, openImportWriter } from './import-writer.ts'

/** The longest wait for a lock, and the pause between two attempts. */
const LOCK_TIMEOUT_MS = 30_000
const LOCK_RETRY_MS = 3

/** Opens a database whose schema is up to date. Connections are opened when they are first used, after all lines were read. */
export function openImport(path: string, nowMs: () => number): PlantImport {
  let reader: ImportReader | undefined
  let writer: ImportWriter | undefined
  const read = (): ImportReader => {
    reader ??= openImportReader(path)
    return reader
  }
  const write = (): ImportWriter => {
    writer ??= openImportWriter(path, nowMs)
    return writer
  }
  const attempt = async <T>(work: () => T, { duringWrite }: { readonly duringWrite: boolean }): Promise<T> => {
    try {
      return work()
    } catch (error) {
      throw toAppError(error, { duringWrite, path })
    }
  }
  /** SQLite would wait for a lock inside a call, in which no signal is handled. So the pause is here. */
  const attemptLocked = async <T>(work: () => T): Promise<T> => {
    const deadlineMs = performance.now() + LOCK_TIMEOUT_MS
    for (;;) {
      try {
        return await attempt(work, { duringWrite: true })
      } catch (error) {
        const isBusy = error instanceof AppError && error.kind === 'store_busy'
        if (!isBusy || performance.now() > deadlineMs) throw error
        await Bun.sleep(LOCK_RETRY_MS)
      }
    }
  }

  return {
    findExisting: (plants) => attempt(() => read().findExisting(plants), { duringWrite: false }),
    write: (plants, rule) => attemptLocked(() => write().write(plants, rule)),
    begin: () => attemptLocked(() => write().begin()),
    commit: () => attempt(() => write().commit(), { duringWrite: true }),
    [Symbol.dispose]() {
      reader?.close()
      writer?.close()
    },
  }
}

type ImportReader = ReturnType<typeof openImportReader>

function openImportReader(path: string) {
  const db = openReader(path)
  const selectRange = db.prepare<unknown, [string, bigint, bigint]>(
    'select 1 from plants where user_id = (select id from users where name = ?1) and id between ?2 and ?3 limit 1',
  )
  const hasPlant = (user: string, from: bigint, to: bigint) => selectRange.values(user, from, to).length > 0

  /** Looks up single plants only if their user has any plant between the smallest and the largest id. */
  const findExisting = <P extends OwnedPlant>(plants: readonly P[]): readonly P[] => {
    const ranges = new Map<string, { from: bigint; to: bigint }>()
    for (const { user, id } of plants) {
      const range = ranges.get(user) ?? { from: id, to: id }
      if (id < range.from) range.from = id
      if (id > range.to) range.to = id
      ranges.set(user, range)
    }
    const users = new Set([...ranges].filter(([user, { from, to }]) => hasPlant(user, from, to)).map(([user]) => user))
    return plants.filter(({ user, id }) => users.has(user) && hasPlant(user, id, id))
  }
  return { findExisting, close: () => db.close(true) }
}
