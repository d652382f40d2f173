// Tested in test/store/copy.test.ts.
import { INT64_MIN } from '../../../domain/int64.ts'
import { fromRow } from '../../rows.ts'
import { KEYS, selectCounts, type Table } from '../../tables.ts'
import { BATCH, type Contents, type Row } from '../../tools/contents.ts'
import type { Query } from '../driver.ts'
import { selectPart } from '../tables.ts'

/** All rows, as the transaction sees them. */
export async function contentsOf(query: Query): Promise<Contents> {
  const [counts = {}] = await query<Record<Table, bigint>>(selectCounts('plantstore'))
  const [lastIds = { userId: 0n, tokenId: 0n }] = await query<Contents['lastIds']>(
    'select last_user_id as "userId", last_token_id as "tokenId" from plantstore.counters',
  )
  return {
    counts: fromRow(counts),
    lastIds,
    async *batches(table) {
      const columns = KEYS[table].join(', ')
      const parameters = KEYS[table].map((_, index) => `$${index + 1}::int8`)
      const next = `(${columns}) > (${parameters.join(', ')}) order by ${columns} limit ${BATCH.rows}`
      const select = selectPart(table, columns, next, BATCH.textLength)
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
    },
  }
}
