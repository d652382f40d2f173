// Tested in test/store/copy.test.ts.
import { PLANT_FIELDS } from '../domain/plant.ts'

/** The tables of a store, in an order in which they can be filled: no row refers to a later table. */
export const TABLES = ['users', 'tokens', 'plants'] as const
export type Table = (typeof TABLES)[number]

/** The columns of the tables, which have the same names in every store. The first ones are the primary key. */
export const COLUMNS: Readonly<Record<Table, Readonly<Record<string, 'integer' | 'text' | 'bytes'>>>> = {
  users: { id: 'integer', name: 'text', created_at_ms: 'integer', blocked_at_ms: 'integer' },
  tokens: {
    ...{ id: 'integer', user_id: 'integer', hash: 'bytes', scope: 'text', label: 'text' },
    ...{ created_at_ms: 'integer', expires_at_ms: 'integer', revoked_at_ms: 'integer', last_used_at_ms: 'integer' },
    replaced_by: 'integer',
  },
  plants: {
    user_id: 'integer',
    id: 'integer',
    ...Object.fromEntries(PLANT_FIELDS.map((field) => [field, 'text'] as const)),
  },
}
/** The columns of the primary keys. All are integers. */
export const KEYS = { users: ['id'], tokens: ['id'], plants: ['user_id', 'id'] } as const
export const PLANT_COLUMNS = Object.keys(COLUMNS.plants)
export const FIELD_COLUMNS = PLANT_FIELDS.join(', ')

export type Counts = Readonly<Record<Table, number>>

/** Counts the rows of each table, in the order of `TABLES`. */
export const selectCounts = (schema: string): string =>
  `select ${TABLES.map((table) => `(select count(*) from ${schema}.${table}) as ${table}`).join(', ')}`

/** A value as text: an integer in decimal, bytes in hexadecimal. A value that is missing is null. */
export const toText = (value: bigint | number | string | Uint8Array | null | undefined): string | null =>
  value instanceof Uint8Array ? value.toHex() : (value?.toString() ?? null)
