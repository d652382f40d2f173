import { type NewToken, PAGE_ROWS, type Tokens } from '../../domain/store.ts'
import type { Token } from '../../domain/token.ts'
import type { Connections } from '../../engine/sqlite/connections.ts'
import { fromRow, type Row } from '../rows.ts'
import { selectTokens } from '../token-rules.ts'
import { requireUser } from './lookups.ts'
import type { Writes } from './writing/writes.ts'

/** Tokens in SQLite, which has only the hash of each token's text. */
export function tokens({ reader, read, writer: { write }, versions }: Connections<Writes>) {
  const selectByHash = reader.prepare<Row, [Uint8Array]>(`${selectTokens()} where hash = ?1`)

  return {
    findToken: (hash) =>
      read(() => {
        const row = selectByHash.get(hash)
        return row === null ? undefined : fromRow<Token>(row)
      }),

    createTokens: (tokens, { ifNone = false } = {}) => write(['createTokens', tokens.map(withHexHash), ifNone]),

    listTokens: ({ userName, after = 0, limit = PAGE_ROWS } = {}) =>
      read(() => {
        const ofUser = userName === undefined ? [] : [requireUser(reader, userName)]
        const condition = ofUser.length > 0 ? 'user_id = ?3 and' : ''
        const select = reader.prepare<Row, number[]>(
          `${selectTokens()} where ${condition} tokens.id > ?1 order by tokens.id limit ?2`,
        )
        return select.all(after, limit, ...ofUser).map(fromRow<Token>)
      }),

    rotateToken: (id, successor, overlapMs) => write(['rotateToken', id, withHexHash(successor), overlapMs]),

    revokeTokens: (selection, nowMs) => write(['revokeTokens', selection, nowMs]),

    touchTokens: (lastUsedAtMs, nowMs) => write(['touchTokens', [...lastUsedAtMs], nowMs]),

    tokensVersion: versions.shared,
    hasSameTokens: (_, since) => since === versions.shared(),
  } satisfies Tokens
}

const withHexHash = (token: NewToken) => ({ ...token, hash: token.hash.toHex() })
