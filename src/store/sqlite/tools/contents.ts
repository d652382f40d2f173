import type { Database, Statement } from 'bun:sqlite'
import {
  BATCH_ROWS,
  BATCH_TEXT_LENGTH,
  COLUMNS,
  type Contents,
  KEYS,
  type Row,
  type Source,
  TABLES,
  type Table,
} from '../../tools/contents.ts'
import { openReader, rowsOf } from '../connection.ts'
import { toAppError } from '../errors.ts'
import { lockAlone } from '../files/lock.ts'
import { updateSchema } from './update-schema.ts'

/** `CopyTools.read` for SQLite. Without a snapshot no other process can open the database meanwhile. */
export async function readSqlite<T>(
  path: string,
  { isSnapshot }: { readonly isSnapshot: boolean },
  use: (source: Source) => Promise<T>,
): Promise<T> {
  await updateSchema(path)
  using opened = isSnapshot ? openSnapshot(path) : lockAlone(path, 'end it, or use --snapshot')
  let contents: Contents
  try {
    contents = contentsOf(opened.db, path)
  } catch (error) {
    throw toAppError(error, { duringWrite: false, path })
  }
  return await use(contents)
}

function openSnapshot(path: string) {
  const db = openReader(path)
  return { db, [Symbol.dispose]: () => db.close(true) }
}

/** Begins to read all rows as of now. The connection sees no later change. It must read integers as bigints. */
export function contentsOf(db: Database, path: string): Contents {
  db.run('begin')
  const counts = TABLES.map((table) => `(select count(*) from ${table})`)
  const [[users, tokens, plants] = []] = db.prepare(`select ${counts.join(', ')}`).values()
  const lastIds = new Map(rowsOf<[string, bigint]>(db.prepare('select name, seq from sqlite_sequence').values()))
  return {
    counts: { users: Number(users), tokens: Number(tokens), plants: Number(plants) },
    lastIds: { userId: lastIds.get('users') ?? 0n, tokenId: lastIds.get('tokens') ?? 0n },
    async *batches(table) {
      try {
        yield* readBatches(db.prepare(selectAll(table)))
      } catch (error) {
        throw toAppError(error, { duringWrite: false, path })
      }
    },
  }
}

const selectAll = (table: Table): string =>
  `select ${Object.keys(COLUMNS[table]).join(', ')} from ${table} order by ${KEYS[table].join(', ')}`

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
