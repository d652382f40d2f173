import type { Database } from 'bun:sqlite'
import { type CreatedTokens, type NewToken, PAGE_ROWS, type Store, type TokenSelection } from '../../domain/store.ts'
import type { Token, TokenId } from '../../domain/token.ts'
import { compareTokens, endOfReplaced, fromRow, NONE_CREATED, type Row, selectTokens, tokenNotFound } from '../rows.ts'
import type { Connections } from './connections.ts'
import { insertUser, requireUser } from './users.ts'

const SELECT = selectTokens()
const SELECT_BY_HASH = `${SELECT} where hash = ?1`

/** Tokens in SQLite, which has only the hash of each token's text. */
export function tokens({ reader, read, write }: Connections) {
  const selectByHash = reader.prepare<Row, [Uint8Array]>(SELECT_BY_HASH)

  return {
    findToken: (hash) =>
      read(() => {
        const row = selectByHash.get(hash)
        return row === null ? undefined : fromRow<Token>(row)
      }),

    createTokens: (tokens, { ifNone = false } = {}) => write(['createTokens', tokens, ifNone]),

    listTokens: ({ userName, after = 0, limit = PAGE_ROWS } = {}) =>
      read(() => {
        const ofUser = userName === undefined ? [] : [requireUser(reader, userName)]
        const condition = ofUser.length > 0 ? 'user_id = ?3 and' : ''
        const select = reader.prepare<Row, number[]>(
          `${SELECT} where ${condition} tokens.id > ?1 order by tokens.id limit ?2`,
        )
        return select.all(after, limit, ...ofUser).map(fromRow<Token>)
      }),

    rotateToken: (id, successor, overlapMs) => write(['rotateToken', id, successor, overlapMs]),

    revokeTokens: (selection, nowMs) => write(['revokeTokens', selection, nowMs]),

    touchTokens: (lastUsedAtMs, nowMs) => write(['touchTokens', lastUsedAtMs, nowMs]),
  } satisfies Partial<Store>
}

/** The writes of tokens, as in the contract of `Store`. */
export function tokenWrites(writer: Database) {
  const touch = writer.prepare<unknown, [number, number, number]>(
    'update tokens set last_used_at_ms = ?2 where id = ?1 and (last_used_at_ms between ?2 and ?3) is not true',
  )

  return {
    createTokens(tokens: readonly NewToken[], ifNone: boolean): CreatedTokens {
      if (ifNone && writer.prepare('select 1 from tokens limit 1').values().length > 0) return NONE_CREATED
      const select = writer.prepare<Row, [Uint8Array]>(SELECT_BY_HASH)
      const stored = tokens.map(({ hash }) => select.all(hash).map(fromRow<Token>)[0])
      const { missing, refused } = compareTokens(tokens, stored)
      const created = missing.map((token) => insertToken(writer, token))
      const newUsers = missing.map(({ userName }) => userName).filter((_, index) => created[index]?.userIsNew)
      return { created: created.length, firstId: created[0]?.id ?? 0, newUsers, refused }
    },

    revokeTokens(selection: TokenSelection, nowMs: number): number {
      const isUser = 'userName' in selection
      const id = isUser ? requireUser(writer, selection.userName) : requireToken(writer, selection.id).id
      const condition = `${isUser ? 'user_id' : 'id'} = ?1 and revoked_at_ms is null`
      return writer.run(`update tokens set revoked_at_ms = ?2 where ${condition}`, [id, nowMs]).changes
    },

    rotateToken(id: TokenId, successor: NewToken, overlapMs: number) {
      const old = requireToken(writer, id)
      const { column, oldEndsAtMs } = endOfReplaced(old, successor.createdAtMs, overlapMs)
      const { id: replacedBy } = insertToken(writer, successor)
      writer.run(`update tokens set replaced_by = ?2, ${column} = ?3 where id = ?1`, [id, replacedBy, oldEndsAtMs])
      return { id: replacedBy, oldEndsAtMs }
    },

    touchTokens(lastUsedAtMs: ReadonlyMap<TokenId, number>, nowMs: number): void {
      for (const [id, atMs] of lastUsedAtMs) touch.run(id, atMs, nowMs)
    },
  }
}

function requireToken(db: Database, id: TokenId): Token {
  const row = db.prepare<Row, [TokenId]>(`${SELECT} where tokens.id = ?1`).get(id)
  if (row === null) throw tokenNotFound()
  return fromRow<Token>(row)
}

function insertToken(writer: Database, { userName, hash, scope, label, createdAtMs, expiresAtMs }: NewToken) {
  const userIsNew = insertUser(writer, userName, createdAtMs)
  const { lastInsertRowid } = writer.run(
    `insert into tokens (user_id, hash, scope, label, created_at_ms, expires_at_ms)
     select id, ?2, ?3, ?4, ?5, ?6 from users where name = ?1`,
    [userName, hash, scope, label ?? null, createdAtMs, expiresAtMs ?? null],
  )
  return { id: Number(lastInsertRowid), userIsNew }
}
