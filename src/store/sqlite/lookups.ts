import type { Database } from 'bun:sqlite'
import type { Token, TokenId, UserId } from '../../domain/token.ts'
import { fromRow, type Row, selectTokens, tokenNotFound, userNotFound } from '../rows.ts'
import { rowsOf } from './driver.ts'

/** The identifier of a user. Throws `user_not_found`. */
export function requireUser(db: Database, name: string): UserId {
  const [row] = rowsOf<[id: bigint]>(db, 'select id from users where name = ?1', name)
  if (row === undefined) throw userNotFound(name)
  return Number(row[0])
}

/** The token with this identifier. Throws `token_not_found`. */
export function requireToken(db: Database, id: TokenId): Token {
  const row = db.prepare<Row, [TokenId]>(`${selectTokens()} where tokens.id = ?1`).get(id)
  if (row === null) throw tokenNotFound()
  return fromRow<Token>(row)
}
