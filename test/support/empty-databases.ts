import { Database } from 'bun:sqlite'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { makeFolder } from './folder.ts'
import { administer, makeDatabase, POSTGRES_SERVER } from './postgres.ts'
import { lacks } from './requirement.ts'

/** A database without a store. */
export interface EmptyDatabase extends AsyncDisposable {
  /** The value of `--database`. */
  readonly database: string
  /** All contents, in the same form for each kind of database. `undefined` if there is no store. */
  dump(): Promise<Dump | undefined>
}

/** All rows of all tables by their keys, and the last identifiers of a user and a token. */
type Dump = Readonly<Record<'users' | 'tokens' | 'plants' | 'lastIds', readonly unknown[][]>>

/** A kind of database. */
export interface DatabaseKind {
  readonly name: string
  make(): Promise<EmptyDatabase>
}

const SELECTS = {
  users: 'select id, name, created_at_ms, blocked_at_ms from @users order by id',
  tokens: `select id, user_id, hash, scope, label, created_at_ms, expires_at_ms, revoked_at_ms, last_used_at_ms,
    replaced_by from @tokens order by id`,
  plants: 'select * from @plants order by user_id, id',
} as const

export const SQLITE: DatabaseKind = {
  name: 'SQLite',
  async make() {
    const folder = makeFolder()
    const database = join(folder.path, 'plantstore.db')
    return {
      database,
      dump: async () => (existsSync(database) ? dumpFile(database) : undefined),
      async [Symbol.asyncDispose]() {
        folder[Symbol.dispose]()
      },
    }
  },
}

export const POSTGRES: DatabaseKind = {
  name: 'PostgreSQL',
  async make() {
    const made = await makeDatabase({ isEmpty: true })
    const hasStore = async () => (await rows("select 1 from pg_namespace where nspname = 'plantstore'")).length > 0
    const rows = (text: string) =>
      administer(
        made.url,
        async (sql): Promise<unknown[][]> => [...(await sql.unsafe(text.replaceAll('@', 'plantstore.')).values())],
      )
    return {
      database: made.url,
      dump: async () =>
        (await hasStore())
          ? {
              users: await rows(SELECTS.users),
              tokens: (await rows(SELECTS.tokens)).map(plain),
              plants: await rows(SELECTS.plants),
              lastIds: await rows('select last_user_id, last_token_id from @counters'),
            }
          : undefined,
      [Symbol.asyncDispose]: made[Symbol.asyncDispose],
    }
  },
}

/** The kinds that this machine has. */
export const KINDS: readonly DatabaseKind[] = lacks(POSTGRES_SERVER) ? [SQLITE] : [SQLITE, POSTGRES]

/** All contents of a database file. */
export function dumpFile(database: string): Dump {
  using db = new Database(database, { safeIntegers: true })
  const rowsOf = (text: string): unknown[][] => db.prepare(text.replaceAll('@', '')).values()
  return {
    users: rowsOf(SELECTS.users),
    tokens: rowsOf(SELECTS.tokens).map(plain),
    plants: rowsOf(SELECTS.plants),
    lastIds: rowsOf(`select (select seq from sqlite_sequence where name = 'users'),
      (select seq from sqlite_sequence where name = 'tokens')`),
  }
}

/** The drivers return bytes as different types. */
const plain = (row: unknown[]): unknown[] =>
  row.map((value) => (value instanceof Uint8Array ? Buffer.from(value).toString('hex') : value))
