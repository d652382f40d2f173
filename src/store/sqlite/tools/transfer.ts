import type { Database } from 'bun:sqlite'
import { AppError } from '../../../domain/error.ts'
import type { OwnedPlant, Transfer } from '../../../domain/transfer.ts'
import { openReader } from '../connection.ts'
import { toAppError } from '../errors.ts'
import { exportFrom } from './export.ts'
import { type Importer, openImporter } from './import.ts'

/** How long a lock is waited for, and how often it is looked whether it is gone. */
const PATIENCE_MS = 30_000
const RETRY_MS = 3

/** Plants in bulk in a database that is up to date. Connections are opened when something is asked of them. */
export function sqliteTransfer(path: string, nowMs: () => number): Transfer {
  let reader: Database | undefined
  let find: ReturnType<typeof takenIn> | undefined
  let importer: Importer | undefined
  const read = (): Database => {
    reader ??= openReader(path)
    return reader
  }
  const write = (): Importer => {
    importer ??= openImporter(path, nowMs)
    return importer
  }
  const attempt = async <T>(work: () => T, duringWrite: boolean): Promise<T> => {
    try {
      return work()
    } catch (error) {
      throw toAppError(error, { duringWrite, path })
    }
  }
  /** Tries again while others have the lock. Waiting here lets signals through; SQLite would wait in a call. */
  const attemptLocked = async <T>(work: () => T): Promise<T> => {
    const deadlineMs = performance.now() + PATIENCE_MS
    for (;;) {
      try {
        return await attempt(work, true)
      } catch (error) {
        const isBusy = error instanceof AppError && error.kind === 'store_busy'
        if (!isBusy || performance.now() > deadlineMs) throw error
        await Bun.sleep(RETRY_MS)
      }
    }
  }

  return {
    exportPlants: (userName) => attempt(() => exportFrom(read(), userName, path), false),
    findTaken: (plants) =>
      attempt(() => {
        find ??= takenIn(read())
        return find(plants)
      }, false),
    importPlants: (plants, rule) => attemptLocked(() => write().importPlants(plants, rule)),
    begin: () => attemptLocked(() => write().begin()),
    commit: () => attempt(() => write().commit(), true),
    async close() {
      reader?.close(true)
      reader = undefined
      find = undefined
      importer?.close()
      importer = undefined
    },
  }
}

/**
 * Finds which plants are there already. A user without plants between the smallest and the largest id has none of them:
 * then none is looked for.
 */
function takenIn(reader: Database) {
  // Once for all calls: what a statement takes is given back only when the collector comes by.
  const selectRange = reader.prepare<unknown, [string, bigint, bigint]>(
    'select 1 from plants where user_id = (select id from users where name = ?1) and id between ?2 and ?3 limit 1',
  )
  return (plants: readonly OwnedPlant[]): readonly number[] => {
    const ranges = new Map<string, { least: bigint; most: bigint }>()
    for (const { user, id } of plants) {
      const range = ranges.get(user)
      if (range === undefined) ranges.set(user, { least: id, most: id })
      else if (id < range.least) range.least = id
      else if (id > range.most) range.most = id
    }
    const suspects = new Set<string>()
    for (const [user, { least, most }] of ranges) {
      if (selectRange.values(user, least, most).length > 0) suspects.add(user)
    }
    return plants.flatMap(({ user, id }, index) =>
      suspects.has(user) && selectRange.values(user, id, id).length > 0 ? [index] : [],
    )
  }
}
