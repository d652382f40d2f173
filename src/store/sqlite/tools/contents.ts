import type { Database } from 'bun:sqlite'
import {
  BATCH_ROWS,
  BATCH_TEXT_LENGTH,
  COLUMNS,
  type Contents,
  KEYS,
  type Row,
  TABLES,
  type Table,
} from '../../tools/contents.ts'
import { rowsOf } from '../connection.ts'
import { toAppError } from '../errors.ts'

/** What a database holds now: until the connection is closed it stays so. The connection reads numbers as bigints. */
export function contentsOf(db: Database, path: string): Contents {
  db.run('begin')
  const [[users, tokens, plants] = []] = db
    .prepare(`select ${TABLES.map((table) => `(select count(*) from ${table})`).join(', ')}`)
    .values()
  const given = new Map(rowsOf<[string, bigint]>(db.prepare('select name, seq from sqlite_sequence').values()))
  return {
    counts: { users: Number(users), tokens: Number(tokens), plants: Number(plants) },
    given: { userId: given.get('users') ?? 0n, tokenId: given.get('tokens') ?? 0n },
    batches: (table) => batchesOf(db, table, path),
  }
}

async function* batchesOf(db: Database, table: Table, path: string): AsyncGenerator<readonly Row[]> {
  const text = `select ${COLUMNS[table].join(', ')} from ${table} order by ${KEYS[table].join(', ')}`
  let batch: Row[] = []
  let length = 0
  try {
    for (const object of db.prepare<Record<string, Row[number]>, []>(text).iterate()) {
      const row = Object.values(object)
      batch.push(row)
      length += lengthOf(row)
      if (batch.length < BATCH_ROWS && length < BATCH_TEXT_LENGTH) continue
      yield batch
      batch = []
      length = 0
    }
  } catch (error) {
    throw toAppError(error, { duringWrite: false, path })
  }
  if (batch.length > 0) yield batch
}

const lengthOf = (row: Row): number =>
  row.reduce<number>((sum, value) => sum + (typeof value === 'string' ? value.length : 0), 0)
