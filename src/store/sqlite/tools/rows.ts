import type { Statement } from 'bun:sqlite'
import { BATCH_ROWS, BATCH_TEXT_LENGTH, type Row } from '../../tools/contents.ts'

/** Reads the rows of a statement in batches. */
export function* readBatches(select: Statement<unknown, []>): Generator<readonly Row[]> {
  let batch: Row[] = []
  let length = 0
  for (const object of select.iterate()) {
    // The driver iterates over objects only. Their values have the order and the types of the columns.
    const row = Object.values(object as Record<string, Row[number]>)
    batch.push(row)
    for (const value of row) if (typeof value === 'string') length += value.length
    if (batch.length < BATCH_ROWS && length < BATCH_TEXT_LENGTH) continue
    yield batch
    batch = []
    length = 0
  }
  if (batch.length > 0) yield batch
}
