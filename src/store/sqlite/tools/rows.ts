import type { Database, SQLQueryBindings, Statement } from 'bun:sqlite'
import { BATCH_ROWS, BATCH_TEXT_LENGTH, type Row } from '../../tools/contents.ts'
import { insertInto } from '../insert.ts'

interface BatchLimits {
  readonly rows: number
  /** The length of the text at which a batch ends, in UTF-16 code units. */
  readonly textLength: number
}

/** Reads the rows of a statement in batches. A batch ends with the row that reaches one of the limits. */
export function* readBatches(
  select: Statement<unknown, SQLQueryBindings[]>,
  parameters: readonly SQLQueryBindings[] = [],
  limits: BatchLimits = { rows: BATCH_ROWS, textLength: BATCH_TEXT_LENGTH },
): Generator<readonly Row[]> {
  let batch: Row[] = []
  let length = 0
  for (const object of select.iterate(...parameters)) {
    // The driver iterates over objects only. Their values have the order and the types of the columns.
    const row = Object.values(object as Record<string, Row[number]>)
    batch.push(row)
    for (const value of row) if (typeof value === 'string') length += value.length
    if (batch.length < limits.rows && length < limits.textLength) continue
    yield batch
    batch = []
    length = 0
  }
  if (batch.length > 0) yield batch
}

/** Writes rows into a table with these columns. The first two columns are its key. */
export function rowWriter(db: Database, table: string, columns: readonly string[]) {
  const values = columns.map((column, index) => `${column} = ?${index + 1}`)
  const insert = db.prepare<unknown, SQLQueryBindings[]>(`${insertInto(table, columns)} on conflict do nothing`)
  const update = db.prepare<unknown, SQLQueryBindings[]>(
    `update ${table} set ${values.slice(2).join(', ')} where ${values.slice(0, 2).join(' and ')}`,
  )
  return {
    /** Inserts a row unless the table has its key. Returns whether it did. */
    insert: (row: Row): boolean => insert.run(...row).changes > 0,
    /** Replaces the row with the same key. Returns whether the table has one. */
    replace: (row: Row): boolean => update.run(...row).changes > 0,
  }
}
