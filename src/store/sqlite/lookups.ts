// Tested in test/store/sqlite/contract.test.ts.
import type { Database } from 'bun:sqlite'
import type { FoundUser } from '../../domain/store.ts'
import type { Token, TokenId, UserId } from '../../domain/token.ts'
import { fromRow, type Row } from '../rows.ts'
import { selectTokens, tokenNotFound, userNotFound } from '../token-rules.ts'

/** The identifier of a user. Throws `user_not_found`. */
export function requireUser(db: Database, name: string): UserId {
  const user = findUser(db, name)
  if (user === undefined) throw userNotFound(name)
  return user.id
}

export function findUser(db: Database, name: string): FoundUser | undefined {
  const select = 'select id, blocked_at_ms as "blockedAtMs" from users where name = ?1'
  const row = db.prepare<Row, [string]>(select).get(name)
  return row === null ? undefined : fromRow<FoundUser>(row)
}

/** The token with this identifier. Throws `token_not_found`. */
export function requireToken(db: Database, id: TokenId): Token {
  const row = db.prepare<Row, [TokenId]>(`${selectTokens()} where tokens.id = ?1`).get(id)
  if (row === null) throw tokenNotFound()
  return fromRow<Token>(row)
}
