import type { Database } from 'bun:sqlite'
import type { CreatedTokens, NewToken, TokenSelection } from '../../../domain/store.ts'
import type { Token, TokenId } from '../../../domain/token.ts'
import { fromRow, type Row } from '../../rows.ts'
import { compareTokens, NONE_CREATED, planRotation, selectTokens } from '../../token-rules.ts'
import { requireToken, requireUser } from '../lookups.ts'
import { insertUser } from './users.ts'

/** A token to store. The hash is in hexadecimal digits. */
type HexToken = Omit<NewToken, 'hash'> & { readonly hash: string }

export const TOKEN_CHANGES = {
  createTokens: 'tokens',
  revokeTokens: 'tokens',
  rotateToken: 'tokens',
  touchTokens: 'nothing',
} as const

export function tokenWrites(writer: Database) {
  const touch = writer.prepare<unknown, [number, number, number]>(
    'update tokens set last_used_at_ms = ?2 where id = ?1 and (last_used_at_ms between ?2 and ?3) is not true',
  )

  return {
    createTokens(tokens: readonly HexToken[], ifNone: boolean): CreatedTokens {
      if (ifNone && writer.prepare('select 1 from tokens limit 1').values().length > 0) return NONE_CREATED
      const select = writer.prepare<Row, [string]>(`${selectTokens()} where hash = unhex(?1)`)
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

    rotateToken(id: TokenId, successor: HexToken, overlapMs: number) {
      const old = requireToken(writer, id)
      const { column, oldEndsAtMs } = planRotation(old, successor.createdAtMs, overlapMs)
      const { id: replacedBy } = insertToken(writer, successor)
      writer.run(`update tokens set replaced_by = ?2, ${column} = ?3 where id = ?1`, [id, replacedBy, oldEndsAtMs])
      return { id: replacedBy, oldEndsAtMs }
    },

    touchTokens(lastUsedAtMs: readonly (readonly [TokenId, number])[], nowMs: number): void {
      for (const [id, atMs] of lastUsedAtMs) touch.run(id, atMs, nowMs)
    },
  }
}

function insertToken(writer: Database, { userName, hash, scope, label, createdAtMs, expiresAtMs }: HexToken) {
  const userIsNew = insertUser(writer, userName, createdAtMs)
  const { lastInsertRowid } = writer.run(
    `insert into tokens (user_id, hash, scope, label, created_at_ms, expires_at_ms)
     select id, unhex(?2), ?3, ?4, ?5, ?6 from users where name = ?1`,
    [userName, hash, scope, label ?? null, createdAtMs, expiresAtMs ?? null],
  )
  return { id: Number(lastInsertRowid), userIsNew }
}
