import type { Database } from 'bun:sqlite'
import { AppError } from '../../domain/error.ts'
import type { NewToken, TokenSelection } from '../../domain/store.ts'
import type { TokenId } from '../../domain/token.ts'
import { type TokenMethods, type TokenRow, toToken } from '../rows.ts'
import { rowsOf } from './connection.ts'
import type { Connections } from './connections.ts'
import { requireUser } from './users.ts'

const SELECT = `select tokens.id, tokens.user_id, users.name, scope, label,
    tokens.created_at_ms, expires_at_ms, revoked_at_ms, last_used_at_ms
  from tokens join users on users.id = tokens.user_id`

/** Tokens in SQLite, which has only the hash of each token's text. */
export function tokens({ reader, read, write, tokensVersion }: Connections): TokenMethods {
  const selectByHash = reader.prepare<unknown, [Uint8Array]>(`${SELECT} where hash = ?1`)

  return {
    findToken: (hash) =>
      read(() => {
        const [row] = rowsOf<TokenRow>(selectByHash.values(hash))
        return row && toToken(row)
      }),

    createToken: (token) => write(['createToken', token]),

    createFirstToken: (token) => write(['createFirstToken', token]),

    hasTokens: () => read(() => hasTokens(reader)),

    listTokens: (userName) =>
      read(() => {
        if (userName === undefined)
          return rowsOf<TokenRow>(reader.prepare(`${SELECT} order by tokens.id`).values()).map(toToken)
        const userId = requireUser(reader, userName)
        const select = reader.prepare<unknown, [number]>(`${SELECT} where tokens.user_id = ?1 order by tokens.id`)
        return rowsOf<TokenRow>(select.values(userId)).map(toToken)
      }),

    revokeTokens: (selection, nowMs) => write(['revokeTokens', selection, nowMs]),

    touchTokens: (lastUsedAtMs) => write(['touchTokens', lastUsedAtMs]),

    tokensVersion,
  }
}

/** The writes of tokens, as in the contract of `Store`. */
export function tokenWrites(writer: Database) {
  const touch = writer.prepare<unknown, [number, number]>('update tokens set last_used_at_ms = ?2 where id = ?1')

  return {
    createToken: (token: NewToken) => insertToken(writer, token),

    createFirstToken(token: NewToken): boolean {
      if (hasTokens(writer)) return false
      insertToken(writer, token)
      return true
    },

    revokeTokens(selection: TokenSelection, nowMs: number): number {
      const [condition, value] = conditionOf(selection)
      const found = writer.prepare<unknown, [typeof value]>(`select 1 from tokens where ${condition} limit 1`)
      if ('userName' in selection) requireUser(writer, selection.userName)
      else if (found.values(value).length === 0)
        throw new AppError('token_not_found', { message: 'There is no such token.' })
      return writer.run(`update tokens set revoked_at_ms = ?2 where revoked_at_ms is null and ${condition}`, [
        value,
        nowMs,
      ]).changes
    },

    touchTokens(lastUsedAtMs: ReadonlyMap<TokenId, number>): void {
      for (const [id, atMs] of lastUsedAtMs) touch.run(id, atMs)
    },
  }
}

const hasTokens = (db: Database): boolean => db.prepare('select 1 from tokens limit 1').values().length > 0

function insertToken(writer: Database, { userName, hash, scope, label, createdAtMs, expiresAtMs }: NewToken) {
  const { changes } = writer.run('insert into users (name, created_at_ms) values (?1, ?2) on conflict do nothing', [
    userName,
    createdAtMs,
  ])
  const { lastInsertRowid } = writer.run(
    `insert into tokens (user_id, hash, scope, label, created_at_ms, expires_at_ms)
     select id, ?2, ?3, ?4, ?5, ?6 from users where name = ?1`,
    [userName, hash, scope, label ?? null, createdAtMs, expiresAtMs ?? null],
  )
  return { id: Number(lastInsertRowid), userIsNew: changes > 0 }
}

function conditionOf(selection: TokenSelection): [condition: string, value: number | string | Uint8Array] {
  if ('id' in selection) return ['id = ?1', selection.id]
  if ('hash' in selection) return ['hash = ?1', selection.hash]
  return ['user_id = (select id from users where name = ?1)', selection.userName]
}
