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
import type { Transaction } from '../connection.ts'

/** Begins to read all rows as of now. The transaction sees no later change. */
export async function contentsOf({ query }: Transaction): Promise<Contents> {
  await query('set transaction isolation level repeatable read, read only')
  const counts = TABLES.map((table) => `(select count(*) from plantstore.${table})`)
  const [[users = 0n, tokens = 0n, plants = 0n] = []] = await query<bigint[]>(`select ${counts.join(', ')}`)
  const [[userId = 0n, tokenId = 0n] = []] = await query<bigint[]>(
    'select last_user_id, last_token_id from plantstore.counters',
  )
  return {
    counts: { users: Number(users), tokens: Number(tokens), plants: Number(plants) },
    lastIds: { userId, tokenId },
    batches: (table) => readBatches(query, table),
  }
}

async function* readBatches(query: Transaction['query'], table: Table): AsyncGenerator<readonly Row[]> {
  let key: readonly bigint[] = []
  for (;;) {
    const batch = await query<Row>(selectBatch(table, key), key)
    const last = batch.at(-1)
    if (last === undefined) return
    // The first columns are the key, and all keys are integers.
    key = last.slice(0, KEYS[table].length) as bigint[]
    yield batch
  }
}

/** The rows after a key. A batch ends with the row that makes its text too long: 2000 large plants would not fit in memory. */
function selectBatch(table: Table, after: readonly bigint[]): string {
  const key = KEYS[table].join(', ')
  const names = Object.keys(COLUMNS[table])
  const columns = names.join(', ')
  const parameters = after.map((_, index) => `$${index + 1}::int8`).join(', ')
  const condition = after.length === 0 ? '' : `where (${key}) > (${parameters})`
  // PostgreSQL knows the length of a text without reading it.
  const textBytes = names
    .filter((name) => COLUMNS[table][name] === 'text')
    .map((name) => `coalesce(octet_length(${name}), 0)`)
    .join(' + ')
  return `select ${columns} from (
      select ${columns}, sum(${textBytes})
        over (order by ${key} rows between unbounded preceding and 1 preceding) as bytes_before
      from (select ${columns} from plantstore.${table} ${condition} order by ${key} limit ${BATCH_ROWS}) as next_rows
    ) as measured where coalesce(bytes_before, 0) < ${BATCH_TEXT_LENGTH} order by ${key}`
}
