import type { Database } from 'bun:sqlite'
import { closeSync, openSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { assignFields, PLANT_FIELDS, type PlantRow, type PlantValues, valuesOf } from '../../../domain/plant.ts'
import { textLength } from '../../../domain/store.ts'
import type { ConflictRule, OwnedPlant } from '../../../domain/transfer.ts'
import { FIELD_COLUMNS } from '../../plant-columns.ts'
import { openDatabase } from '../connection.ts'
import { toAppError } from '../errors.ts'
import { insertInto } from '../insert.ts'

/** A plant that was read from a line. */
export interface Line extends OwnedPlant {
  readonly line: number
}

/** Memory that a staging table takes, at most, however much is in it: SQLite counts it in KiB. */
const CACHE_KIB = 64 * 1024

/** Length of text at which a batch that is read ends. */
const BATCH_TEXT_LENGTH = 1024 * 1024

type Row = PlantRow & { readonly line: bigint; readonly user: string; readonly id: bigint }

/** Plants that were read and are not imported yet. */
export type StagingTable = ReturnType<typeof openStagingTable>

/**
 * Keeps plants on disk until all of them have been read, in a file in this directory that has no name, so that nothing is
 * left of it when the process ends, however it does. Of plants with one user and id it keeps one: with `replace` what came
 * last, else what came first. What fails on that disk fails as the store does.
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
  const insert = db.prepare<unknown, [user: string, id: bigint, line: number, ...values: PlantValues]>(
    `${insertInto('lines', ['user', 'id', 'line', ...PLANT_FIELDS])} on conflict do nothing`,
  )
  const update = db.prepare<unknown, [user: string, id: bigint, ...values: PlantValues]>(
    `update lines set ${PLANT_FIELDS.map((field, index) => `${field} = ?${index + 3}`).join(', ')} where user = ?1 and id = ?2`,
  )
  const selectLine = db.prepare<unknown, [string, bigint]>('select line from lines where user = ?1 and id = ?2')
  const select = db.prepare<Row, [string, bigint, number]>(
    `select line, user, id, ${FIELD_COLUMNS} from lines where (user, id) > (?1, ?2) order by user, id limit ?3`,
  )

  return {
    directory,
    /** Keeps a plant. Returns the line of the one that has its user and id already, if there is one. */
    add: ({ line, user, id, ...plant }: Line): number | undefined =>
      attempt(() => {
        const values = valuesOf(plant)
        if (insert.run(user, id, line, ...values).changes > 0) return undefined
        if (rule === 'replace') update.run(user, id, ...values)
        const [[first] = []] = selectLine.values(user, id)
        return Number(first)
      }),
    /**
     * The next plants after one by user and id, as they are stored: what is stored in another order takes many times as long.
     * Fewer where their text is long, none at the end.
     */
    read: (after: OwnedPlant | undefined, limit: number): readonly Line[] =>
      attempt(() => {
        const lines: Line[] = []
        let length = 0
        // No user has an empty name.
        for (const row of select.iterate(after?.user ?? '', after?.id ?? 0n, limit)) {
          const line = assignFields({ line: Number(row.line), user: row.user, id: row.id }, row)
          lines.push(line)
          length += textLength(line)
          if (length >= BATCH_TEXT_LENGTH) break
        }
        return lines
      }),
    [Symbol.dispose]: () => db.close(true),
  }
}

/** A database that nothing is left of when it is closed, in a transaction that nobody ends. */
function openNameless(path: string): Database {
  closeSync(openSync(path, 'wx', 0o600))
  const db = openDatabase(path, { readwrite: true, safeIntegers: true, strict: true })
  // SQLite has it open.
  rmSync(path)
  db.run('pragma locking_mode = exclusive')
  db.run('pragma journal_mode = memory')
  db.run('pragma synchronous = off')
  db.run(`pragma cache_size = -${CACHE_KIB}`)
  db.run(`create table lines (
      user text not null, id integer not null, line integer not null, ${PLANT_FIELDS.map((field) => `${field} text`).join(', ')},
      primary key (user, id)
    ) strict, without rowid`)
  db.run('begin')
  return db
}
