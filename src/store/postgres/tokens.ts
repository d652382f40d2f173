import { type NewToken, PAGE_ROWS, type Store } from '../../domain/store.ts'
import type { Token, TokenId } from '../../domain/token.ts'
import { endOfReplaced, type TokenRow, tokenNotFound, toToken } from '../rows.ts'
import type { Transaction } from './connection.ts'
import { type Connections, READ_ALL_TIMEOUT_MS } from './connections.ts'
import { insertUser, nextId, requireUser } from './users.ts'

const SELECT = `select tokens.id, tokens.user_id, users.name, tokens.scope, tokens.label,
    tokens.created_at_ms, tokens.expires_at_ms, tokens.revoked_at_ms, tokens.last_used_at_ms,
    tokens.replaced_by, users.blocked_at_ms
  from plantstore.tokens join plantstore.users on users.id = tokens.user_id`

/** Tokens in PostgreSQL. The database holds the hash of a token, but not its text. */
export function tokens({ read, transaction, changeTokens, tokensVersion, hasSameTokens, column }: Connections) {
  return {
    async findToken(hash) {
      const [row] = await read<TokenRow>(`${SELECT} where tokens.hash = $1`, [hash])
      return row && toToken(row)
    },

    createToken: (token) => changeTokens((inside) => insertToken(inside, token)),

    createFirstToken: (token) =>
      changeTokens(async (inside) => {
        const found = await inside.query('select 1 from plantstore.tokens limit 1')
        if (found.length > 0) return false
        await insertToken(inside, token)
        return true
      }),

    async listTokens({ userName, after = 0, limit = PAGE_ROWS } = {}) {
      const [condition, ofUser] = userName === undefined ? ['', []] : ['users.name = $3 and', [userName]]
      const select = `${SELECT} where ${condition} tokens.id > $1 order by tokens.id limit $2`
      const rows = await read<TokenRow>(select, [after, limit, ...ofUser], READ_ALL_TIMEOUT_MS)
      if (rows.length === 0 && userName !== undefined) await requireUser({ query: read }, userName)
      return rows.map(toToken)
    },

    revokeTokens: (selection, nowMs) =>
      changeTokens(async (inside, announce) => {
        const isUser = 'userName' in selection
        const user = isUser
          ? await requireUser(inside, selection.userName)
          : (await requireToken(inside, selection.id)).userId
        await announce(user)
        const update = `update plantstore.tokens set revoked_at_ms = $2
          where ${isUser ? 'user_id' : 'id'} = $1 and revoked_at_ms is null returning id`
        return (await inside.query(update, [isUser ? user : selection.id, nowMs])).length
      }),

    rotateToken: (id, successor, overlapMs) =>
      changeTokens(async (inside, announce) => {
        const old = await requireToken(inside, id)
        await announce(old.userId)
        const { column, oldEndsAtMs } = endOfReplaced(old, successor.createdAtMs, overlapMs)
        const { id: replacedBy } = await insertToken(inside, successor)
        const update = `update plantstore.tokens set replaced_by = $2, ${column} = $3 where id = $1`
        await inside.query(update, [id, replacedBy, oldEndsAtMs])
        return { id: replacedBy, oldEndsAtMs }
      }),

    touchTokens: (lastUsedAtMs) =>
      transaction(async ({ query }) => {
        await query(
          `update plantstore.tokens set last_used_at_ms = used.at_ms
           from unnest($1::int8[], $2::int8[]) as used (id, at_ms) where tokens.id = used.id`,
          [column([...lastUsedAtMs.keys()], 'int8'), column([...lastUsedAtMs.values()], 'int8')],
        )
      }),

    tokensVersion,
    hasSameTokens,
  } satisfies Partial<Store>
}

async function insertToken(inside: Transaction, token: NewToken) {
  const user = await insertUser(inside, token.userName, token.createdAtMs)
  const id = await nextId(inside, 'last_token_id')
  await inside.query(
    `insert into plantstore.tokens (id, user_id, hash, scope, label, created_at_ms, expires_at_ms)
     values ($1, $2, $3, $4, $5, $6, $7)`,
    [id, user.id, token.hash, token.scope, token.label ?? null, token.createdAtMs, token.expiresAtMs ?? null],
  )
  return { id, userIsNew: user.isNew }
}

async function requireToken({ query }: Transaction, id: TokenId): Promise<Token> {
  const [row] = await query<TokenRow>(`${SELECT} where tokens.id = $1`, [id])
  if (row === undefined) throw tokenNotFound()
  return toToken(row)
}
