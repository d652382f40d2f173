import { Database } from 'bun:sqlite'
import { copyFileSync, writeFileSync } from 'node:fs'
import { makeToken } from '../../src/domain/token.ts'
import { createTokenIn } from '../support/tokens.ts'

/** The content of a database. Every user has plants with the ids from 1 on. */
export interface Content {
  readonly users: number
  readonly plantsPerUser: number
}

/** A database with tokens for all its users. */
export interface Seed {
  readonly path: string
  /** The token of the first user. */
  readonly token: string
  /** A file with one token on each line. */
  readonly tokensFile: string
  /** Copies the database to a path. Returns the path. */
  copy(path: string): string
}

/** Makes a database. `createFirstToken` creates the file, the schema and the first user. */
export async function makeDatabase(
  path: string,
  { users, plantsPerUser }: Content,
  createFirstToken: (path: string, user: string) => Promise<string> = createTokenIn,
): Promise<Seed> {
  const token = await createFirstToken(path, 'user-1')
  const db = new Database(path, { readwrite: true, strict: true })
  // There is nothing to lose yet.
  db.run('pragma journal_mode = off')
  db.run('pragma synchronous = off')
  db.run('begin')
  const tokens = [token, ...insertUsers(db, users - 1)]
  insertPlants(db, users, plantsPerUser)
  db.run('commit')
  db.run('pragma synchronous = full')
  db.run('pragma journal_mode = wal')
  db.run('pragma wal_checkpoint(truncate)')
  db.close(true)
  const tokensFile = `${path}.tokens`
  writeFileSync(tokensFile, tokens.map((text) => `${text}\n`).join(''))
  return {
    path,
    token,
    tokensFile,
    copy(to) {
      copyFileSync(path, to)
      return to
    },
  }
}

/** The number of plants in a database. A server may have the database open. */
export function countPlants(path: string): number {
  using db = new Database(path, { readonly: true })
  return db.query<{ count: number }, []>('select count(*) as count from plants').get()?.count ?? 0
}

/** Inserts the users from 2 on with one token each. Returns the tokens. */
function insertUsers(db: Database, count: number): string[] {
  const nowMs = Date.now()
  const insertUser = db.prepare<unknown, [string, number]>('insert into users (name, created_at_ms) values (?1, ?2)')
  const insertToken = db.prepare<unknown, [number | bigint, Uint8Array, string, number]>(
    'insert into tokens (user_id, hash, scope, created_at_ms) values (?1, ?2, ?3, ?4)',
  )
  return Array.from({ length: count }, (_, index) => {
    const userName = `user-${index + 2}`
    const options = { userName, scope: 'write', label: undefined, expiresAfterMs: undefined } as const
    const { text, newToken } = makeToken(options, Date.now())
    const { lastInsertRowid } = insertUser.run(userName, nowMs)
    insertToken.run(lastInsertRowid, newToken.hash, newToken.scope, nowMs)
    return text
  })
}

function insertPlants(db: Database, users: number, plantsPerUser: number): void {
  const insert = db.prepare<unknown, [number, number]>(
    `with recursive numbers (number) as (select 1 union all select number + 1 from numbers where number < ?2)
     insert into plants (user_id, id, name, tag)
     select ?1, number, 'Monstera deliciosa ' || number, 'evergreen' from numbers`,
  )
  for (let user = 1; user <= users; user++) insert.run(user, plantsPerUser)
}
