// Tested in test/store/copy.test.ts.
import { COLUMNS, type Table, toText } from '../tables.ts'
import { columns, type Query } from './driver.ts'

const ARRAY_TYPES = { integer: 'int8', text: 'text', bytes: 'text' } as const

/**
 * Inserts rows whose values have the order of `COLUMNS`. A row may lack its last values, which then are null. The driver cannot
 * send an array of bytes, so bytes are sent in hexadecimal.
 */
export async function insertRows(
  query: Query,
  table: Table,
  rows: readonly (readonly Parameters<typeof toText>[0][])[],
): Promise<void> {
  const types = Object.entries(COLUMNS[table])
  const names = types.map(([name]) => name).join(', ')
  const values = types.map(([name, type]) => (type === 'bytes' ? `decode(${name}, 'hex')` : name))
  const arrays = types.map(([, type], index) => `$${index + 1}::${ARRAY_TYPES[type]}[]`)
  const valuesAt = (index: number) => rows.map((row) => toText(row[index]))
  const parameters = types.flatMap(([, type], index) => columns(ARRAY_TYPES[type], valuesAt(index)))
  await query(
    `insert into plantstore.${table} (${names})
     select ${values.join(', ')} from unnest(${arrays.join(', ')}) as rows (${names})`,
    parameters,
  )
}

/**
 * Returns a statement that selects the columns `names` of rows, or all columns, in the order of `key`. `condition` must end with
 * that order and a limit, so that the database sorts once. The rows end `rowsAfter` rows after the one that brings the length of
 * their texts to `textBytes`, because many large plants would not fit in memory. PostgreSQL knows the length of a text without
 * reading it.
 */
export function selectPart(
  table: Table,
  key: string,
  condition: string,
  textBytes: number,
  { names = Object.keys(COLUMNS[table]).join(', '), rowsAfter = 0 } = {},
): string {
  const texts = Object.entries(COLUMNS[table]).filter(([, type]) => type === 'text')
  const lengths = texts.map(([name]) => `coalesce(octet_length(${name}), 0)`)
  return `select ${names} from (
      select ${names}, sum(${lengths.join(' + ')})
        over (order by ${key} rows between unbounded preceding and ${rowsAfter + 1} preceding) as bytes_before
      from (select ${names} from plantstore.${table} where ${condition}) as found
    ) as measured where coalesce(bytes_before, 0) < ${textBytes} order by ${key}`
}
