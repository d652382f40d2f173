import type { Database } from 'bun:sqlite'
import { closeSync, openSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { assignValues, PLANT_FIELDS, type PlantValues, valuesOf } from '../../../domain/plant.ts'
import type { ConflictRule, OwnedPlant } from '../../../domain/transfer.ts'
import { FIELD_COLUMNS } from '../../rows.ts'
import type { Row } from '../../tools/contents.ts'
import { openDatabase } from '../connection.ts'
import { toAppError } from '../errors.ts'
import { readBatches, rowWriter } from './rows.ts'

/** A plant and the number of its line. */
export interface Line extends OwnedPlant {
  readonly line: number
}

/** The most memory of a staging table, in KiB. */
const CACHE_KIB = 64 * 1024
/** The length of text at which a batch ends. */
const BATCH_TEXT_LENGTH = 1024 * 1024

type Key = Pick<OwnedPlant, 'user' | 'id'>

/** The plants of an import that were read and are not written yet. */
export type StagingTable = ReturnType<typeof openStagingTable>

/**
 * Keeps plants on disk until all lines were read. The file is in this directory and has no name, so nothing of it is left when
 * the process ends. Of several plants with the same user and id it keeps the last one with `replace`, else the first one.
 */
export function openStagingTable(directory: string, rule: ConflictRule) {
  const path = join(directory, `plantstore-import-${crypto.randomUUID()}`)
  const attempt = <T>(work: () => T): T => {
    try {
      return work()
    } catch (error) {
      throw toAppError(error, { duringWrite: false, path })
    }
  }
  const db = attempt(() => openNameless(path))
  const rows = rowWriter(db, 'lines', ['user', 'id', ...PLANT_FIELDS, 'line'])
  const selectLine = db.prepare<unknown, [string, bigint]>('select line from lines where user = ?1 and id = ?2')
  const select = db.prepare(
    `select line, user, id, ${FIELD_COLUMNS} from lines where (user, id) > (?1, ?2) order by user, id limit ?3`,
  )

  const readAfter = ({ user, id }: Key, limit: number): readonly Line[] => {
    const [batch = []] = readBatches(select, [user, id, limit], { rows: limit, textLength: BATCH_TEXT_LENGTH })
    return batch.map(toLine)
  }

  return {
    directory,
    /** Adds a plant. Returns the line of an earlier plant with its user and id, if the table has one. */
    add: (plant: Line): number | undefined =>
      attempt(() => {
        const row = [plant.user, plant.id, ...valuesOf(plant), BigInt(plant.line)]
        if (rows.insert(row)) return undefined
        const [[first] = []] = selectLine.values(plant.user, plant.id)
        if (rule === 'replace') rows.replace(row)
        return Number(first)
      }),
    /**
     * All plants in batches, in the order of the table `plants`, because writing in another order takes many times as long.
     * `limit` returns the size of the next batch. A batch is smaller if its text is long.
     */
    *batches(limit: () => number): Generator<readonly Line[]> {
      // No user has an empty name.
      let after: Key = { user: '', id: 0n }
      for (;;) {
        const batch = attempt(() => readAfter(after, limit()))
        const last = batch.at(-1)
        if (last === undefined) return
        yield batch
        after = last
      }
    },
    [Symbol.dispose]: () => db.close(true),
  }
}

function toLine(row: Row): Line {
  // These are the columns that the statement selects.
  const [line, user, id, ...values] = row as readonly [bigint, string, bigint, ...PlantValues]
  return assignValues({ line: Number(line), user, id }, values)
}

/** Opens a database without a name, in a transaction that never ends. Nothing of the database is left once it is closed. */
function openNameless(path: string): Database {
  closeSync(openSync(path, 'wx', 0o600))
  const db = openDatabase(path, { readwrite: true, safeIntegers: true, strict: true })
  // SQLite has opened the file.
  rmSync(path)
  db.run('pragma locking_mode = exclusive')
  db.run('pragma journal_mode = memory')
  db.run('pragma synchronous = off')
  db.run(`pragma cache_size = -${CACHE_KIB}`)
  db.run(`create table lines (
      user text not null, id integer not null, ${PLANT_FIELDS.map((field) => `${field} text`).join(', ')},
      line integer not null, primary key (user, id)
    ) strict, without rowid`)
  db.run('begin')
  return db
}
