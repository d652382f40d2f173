import { INT64_MIN } from '../../../domain/int64.ts'
import { fromRow } from '../../rows.ts'
import { BATCH, COLUMNS, type Contents, KEYS, type Row, selectCounts, type Table } from '../../tools/contents.ts'
import type { Query } from '../driver.ts'

/** All rows, as the transaction sees them. */
export async function contentsOf(query: Query): Promise<Contents> {
  const [counts = {}] = await query<Record<Table, bigint>>(selectCounts('plantstore'))
  const [lastIds = { userId: 0n, tokenId: 0n }] = await query<Contents['lastIds']>(
    'select last_user_id as "userId", last_token_id as "tokenId" from plantstore.counters',
  )
  return {
    counts: fromRow(counts),
    lastIds,
    batches: (table) => readBatches(query, table),
  }
}

async function* readBatches(query: Query, table: Table): AsyncGenerator<readonly Row[]> {
  const select = selectBatch(table)
  // Every row comes after this key, because the identifiers of users and tokens begin with 1.
  let key: readonly bigint[] = KEYS[table].map(() => INT64_MIN)
  for (;;) {
    const rows = (await query<Readonly<Record<string, Row[number]>>>(select, key)).map(Object.values<Row[number]>)
    const last = rows.at(-1)
    if (last === undefined) return
    // The first columns are the key, and all keys are integers.
    key = last.slice(0, key.length) as bigint[]
    yield rows
  }
}

/** The rows after a key. A batch ends with the row that makes its text too long: 2000 large plants would not fit in memory. */
function selectBatch(table: Table): string {
  const key = KEYS[table].join(', ')
  const parameters = KEYS[table].map((_, index) => `$${index + 1}::int8`).join(', ')
  const names = Object.keys(COLUMNS[table])
  const columns = names.join(', ')
  // PostgreSQL knows the length of a text without reading it.
  const textBytes = names
    .filter((name) => COLUMNS[table][name] === 'text')
    .map((name) => `coalesce(octet_length(${name}), 0)`)
    .join(' + ')
  return `select ${columns} from (
      select ${columns}, sum(${textBytes})
        over (order by ${key} rows between unbounded preceding and 1 preceding) as bytes_before
      from (select ${columns} from plantstore.${table} where (${key}) > (${parameters}) order by ${key} limit ${BATCH.rows}) as next_rows
    ) as measured where coalesce(bytes_before, 0) < ${BATCH.textLength} order by ${key}`
}
