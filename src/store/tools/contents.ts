import { PLANT_FIELDS } from '../../domain/plant.ts'
import type { Counts } from '../file-tools.ts'
import { PLANT_KEY } from '../rows.ts'

/** The tables of a store, in an order in which they can be filled: no row refers to a later table. */
export const TABLES = ['users', 'tokens', 'plants'] as const
export type Table = (typeof TABLES)[number]

export type ColumnType = 'integer' | 'text' | 'bytes'

const INTEGER = 'integer'
const TEXT = 'text'

/** The columns of the tables, which have the same names in every store. The first ones are the primary key. */
export const COLUMNS: Readonly<Record<Table, Readonly<Record<string, ColumnType>>>> = {
  users: { id: INTEGER, name: TEXT, created_at_ms: INTEGER },
  tokens: {
    ...{ id: INTEGER, user_id: INTEGER, hash: 'bytes', scope: TEXT, label: TEXT },
    ...{ created_at_ms: INTEGER, expires_at_ms: INTEGER, revoked_at_ms: INTEGER, last_used_at_ms: INTEGER },
  },
  plants: { user_id: INTEGER, id: INTEGER, ...Object.fromEntries(PLANT_FIELDS.map((field) => [field, TEXT])) },
}

/** The columns of the primary keys. All are integers. */
export const KEYS: Readonly<Record<Table, readonly string[]>> = { users: ['id'], tokens: ['id'], plants: PLANT_KEY }

/** The values of a row's columns. */
export type Row = readonly (bigint | string | Uint8Array | null)[]

/** A batch of rows ends with the row that reaches one of these limits. The second one is in characters or bytes. */
export const BATCH_ROWS = 2000
export const BATCH_TEXT_LENGTH = 256 * 1024

/** The last identifiers of a user and a token. A store never uses an identifier again, even if its row is deleted. */
export interface LastIds {
  readonly userId: bigint
  readonly tokenId: bigint
}

/** What a store holds at one moment. */
export interface Contents {
  readonly counts: Counts
  readonly lastIds: LastIds
  /** All rows of a table in the order of its key, in batches. */
  batches(table: Table): AsyncIterable<readonly Row[]>
}

/** A store to copy from. */
export interface Source extends Contents {
  /** Reads the store again, if nothing keeps other processes from writing to it meanwhile. */
  readonly readAgain?: <T>(use: (contents: Contents) => Promise<T>) => Promise<T>
}

/** A store to copy into. No process can use it before it is finished. */
export interface Target {
  insert(table: Table, rows: readonly Row[]): Promise<void>
  /** Makes the rows durable, and reads them. */
  read<T>(use: (contents: Contents) => Promise<T>): Promise<T>
  /** Makes it a store like any other, durably. */
  finish(lastIds: LastIds): Promise<void>
}

/** A value as text: an integer in decimal, bytes in hexadecimal. */
export const toText = (value: Row[number]): string | null =>
  value instanceof Uint8Array ? Buffer.from(value).toString('hex') : (value?.toString() ?? null)
