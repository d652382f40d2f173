import type { Counts } from '../file-tools.ts'
import { PLANT_COLUMNS, PLANT_KEY } from '../plant-columns.ts'

/** The tables of a store, in the order in which they can be filled: no row belongs to one that is not there yet. */
export const TABLES = ['users', 'tokens', 'plants'] as const
export type Table = (typeof TABLES)[number]

/** Their columns, which have the same names in every store. */
export const COLUMNS: Readonly<Record<Table, readonly string[]>> = {
  users: ['id', 'name', 'created_at_ms'],
  tokens: [
    ...['id', 'user_id', 'hash', 'scope', 'label'],
    ...['created_at_ms', 'expires_at_ms', 'revoked_at_ms', 'last_used_at_ms'],
  ],
  plants: PLANT_COLUMNS,
}
/** Those by which their rows are in order: the first ones. */
export const KEYS: Readonly<Record<Table, readonly string[]>> = {
  users: ['id'],
  tokens: ['id'],
  plants: PLANT_KEY,
}

/** The values of a row's columns: numbers are exact. */
export type Row = readonly (bigint | string | Uint8Array | null)[]

/** Rows of one batch, and the length of their text at which it ends. */
export const BATCH_ROWS = 2000
export const BATCH_TEXT_LENGTH = 256 * 1024

/** The largest identifiers that were given so far: they are never given twice, also when their rows are gone. */
export interface Given {
  readonly userId: bigint
  readonly tokenId: bigint
}

/** What a store holds at one moment. */
export interface Contents {
  readonly counts: Counts
  readonly given: Given
  /** All rows of a table by its key, in batches. */
  batches(table: Table): AsyncIterable<readonly Row[]>
}

/** A store that is copied from. */
export interface Source extends Contents {
  /** Shows what is there now, where others ought not to have written meanwhile and nothing keeps them from it. */
  readonly readAgain?: <T>(use: (contents: Contents) => Promise<T>) => Promise<T>
}

/** A store that is copied into: until it is finished nobody else can use it. */
export interface Target {
  add(table: Table, rows: readonly Row[]): Promise<void>
  /** Makes durable what was added, and shows what is there now. */
  read<T>(use: (contents: Contents) => Promise<T>): Promise<T>
  /** From now on it is a store like any other, durably. */
  finish(given: Given): Promise<void>
}

/** How many rows a table has, and the SHA-256 of them, which is the same in every store. */
export interface Digest {
  readonly counts: Counts
  readonly digest: string
}

/** Reads all contents in order, shows each batch to `take`, and digests them. */
export async function digestContents(
  contents: Contents,
  take: (table: Table, rows: readonly Row[]) => Promise<void>,
): Promise<Digest> {
  const hasher = new Bun.CryptoHasher('sha256')
  const counts = { users: 0, tokens: 0, plants: 0 }
  for (const table of TABLES) {
    hasher.update(`${table}\n`)
    for await (const rows of contents.batches(table)) {
      hasher.update(rows.map(lineOf).join(''))
      counts[table] += rows.length
      await take(table, rows)
    }
  }
  return { counts, digest: hasher.digest('hex') }
}

/** A row as JSON in which numbers and bytes are texts: those of one column are all of one type. */
const lineOf = (row: Row): string => `${JSON.stringify(row.map(toText))}\n`

const toText = (value: Row[number]): string | null =>
  value instanceof Uint8Array ? Buffer.from(value).toString('hex') : (value?.toString() ?? null)
