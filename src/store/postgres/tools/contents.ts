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
import { toAppError } from '../errors.ts'
import { PLANT_TEXT_BYTES } from '../plants.ts'

/** How long the text of a row is, in bytes, where it can be long. */
const TEXT_BYTES: Readonly<Record<Table, string>> = {
  users: 'octet_length(name)',
  tokens: 'coalesce(octet_length(label), 0)',
  plants: PLANT_TEXT_BYTES,
}

/** What a transaction sees, which sees the same until its end. */
export async function contentsOf({ query }: Pick<Transaction, 'query'>): Promise<Contents> {
  try {
    const [counts] = await query<bigint[]>(
      `select ${TABLES.map((table) => `(select count(*) from plantstore.${table})`).join(', ')}`,
    )
    const [users, tokens, plants] = (counts ?? []).map(Number)
    const [given] = await query<[bigint, bigint]>('select last_user_id, last_token_id from plantstore.counters')
    return {
      counts: { users: users ?? 0, tokens: tokens ?? 0, plants: plants ?? 0 },
      given: { userId: given?.[0] ?? 0n, tokenId: given?.[1] ?? 0n },
      batches: (table) => batchesOf(query, table),
    }
  } catch (error) {
    throw toAppError(error)
  }
}

async function* batchesOf(query: Transaction['query'], table: Table): AsyncGenerator<readonly Row[]> {
  let key: readonly bigint[] = []
  for (;;) {
    const batch = await query<Row>(selectBatch(table, key), key).catch((error) => {
      throw toAppError(error)
    })
    const last = batch.at(-1)
    if (last === undefined) return
    // The first columns are the key's, which are numbers.
    key = last.slice(0, KEYS[table].length) as bigint[]
    yield batch
  }
}

/** Rows after a key, up to the one with which their text is long: batches of large plants would be larger than memory. */
function selectBatch(table: Table, after: readonly bigint[]): string {
  const key = KEYS[table].join(', ')
  const columns = COLUMNS[table].join(', ')
  const condition =
    after.length === 0 ? '' : `where (${key}) > (${after.map((_, index) => `$${index + 1}::int8`).join(', ')})`
  return `select ${columns} from (
      select ${columns}, sum(${TEXT_BYTES[table]}) over (order by ${key} rows unbounded preceding) as bytes,
        ${TEXT_BYTES[table]} as own_bytes
      from (select ${columns} from plantstore.${table} ${condition} order by ${key} limit ${BATCH_ROWS}) as next_rows
    ) as measured where bytes - own_bytes < ${BATCH_TEXT_LENGTH} order by ${key}`
}
