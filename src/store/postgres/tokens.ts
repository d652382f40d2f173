import { AppError } from '../../domain/error.ts'
import type { NewToken, TokenSelection } from '../../domain/store.ts'
import { type TokenMethods, type TokenRow, toToken } from '../token-rows.ts'
import type { Parameter, Transaction } from './connection.ts'
import type { Connections } from './connections.ts'
import { READ_ALL_TIMEOUT_MS } from './reads.ts'
import { findUser, unknownUser } from './users.ts'

const SELECT = `select tokens.id, tokens.user_id, users.name, tokens.scope, tokens.label,
    tokens.created_at_ms, tokens.expires_at_ms, tokens.revoked_at_ms, tokens.last_used_at_ms
  from plantstore.tokens join plantstore.users on users.id = tokens.user_id`

/** Tokens in PostgreSQL. Of a token's text only the hash is here. */
export function tokens({ read, transaction, versions, column }: Connections): TokenMethods {
  return {
    async findToken(hash) {
      const [row] = await read<TokenRow>(`${SELECT} where tokens.hash = $1`, [hash])
      return row && toToken(row)
    },

    createToken: (token) =>
      transaction(async (inside) => {
        await lockTokens(inside)
        return insertToken(inside, token)
      }).finally(versions.changed),

    createFirstToken: (token) =>
      transaction(async (inside) => {
        await lockTokens(inside)
        const found = await inside.query('select 1 from plantstore.tokens limit 1')
        if (found.length > 0) return false
        await insertToken(inside, token)
        return true
      }).finally(versions.changed),

    hasTokens: async () => (await read('select 1 from plantstore.tokens limit 1')).length > 0,

    async listTokens(userName) {
      const [condition, values] = userName === undefined ? ['', []] : ['where users.name = $1', [userName]]
      const rows = await read<TokenRow>(`${SELECT} ${condition} order by tokens.id`, values, READ_ALL_TIMEOUT_MS)
      if (userName === undefined) return rows.map(toToken)
      const isUser =
        rows.length > 0 || (await read('select 1 from plantstore.users where name = $1', [userName])).length > 0
      if (!isUser) throw unknownUser(userName)
      return rows.map(toToken)
    },

    revokeTokens: (selection, nowMs) =>
      transaction(async (inside) => {
        await lockTokens(inside)
        const [condition, value] = await select(inside, selection)
        const revoked = await inside.query(
          `update plantstore.tokens set revoked_at_ms = $2 where revoked_at_ms is null and ${condition} returning id`,
          [value, nowMs],
        )
        return revoked.length
      }).finally(versions.changed),

    touchTokens: (lastUsedAtMs) =>
      transaction(async ({ query }) => {
        await query(
          `update plantstore.tokens set last_used_at_ms = used.at_ms
           from unnest($1::int8[], $2::int8[]) as used (id, at_ms) where tokens.id = used.id`,
          [column([...lastUsedAtMs.keys()], 'int8'), column([...lastUsedAtMs.values()], 'int8')],
        )
      }),

    tokensVersion: versions.tokens,
  }
}

/**
 * Lets one transaction after the other change tokens and users, and tells all processes that it has. The stamp is by chance
 * and no count, so that it is another one also after a standby that lacked the latest changes was promoted.
 */
export async function lockTokens({ query }: Transaction): Promise<void> {
  const [stamp = 0n] = crypto.getRandomValues(new BigInt64Array(1))
  await query('update plantstore.counters set tokens_stamp = $1', [stamp])
}

async function insertToken(inside: Transaction, token: NewToken) {
  const { query } = inside
  const known = await findUser(inside, token.userName)
  const user = known ?? (await insertUser(inside, token))
  const [[id] = [0n]] = await query<[bigint]>(
    'update plantstore.counters set last_token_id = last_token_id + 1 returning last_token_id',
  )
  await query(
    `insert into plantstore.tokens (id, user_id, hash, scope, label, created_at_ms, expires_at_ms)
     values ($1, $2, $3, $4, $5, $6, $7)`,
    [id, user, token.hash, token.scope, token.label ?? null, token.createdAtMs, token.expiresAtMs ?? null],
  )
  return { id: Number(id), userIsNew: known === undefined }
}

async function insertUser({ query }: Transaction, { userName, createdAtMs }: NewToken) {
  const [[id] = [0n]] = await query<[bigint]>(
    'update plantstore.counters set last_user_id = last_user_id + 1 returning last_user_id',
  )
  await query('insert into plantstore.users (id, name, created_at_ms) values ($1, $2, $3)', [id, userName, createdAtMs])
  return id
}

/** The condition on tokens that a selection is, with its value. Rejects if it names nothing that exists. */
async function select(inside: Transaction, selection: TokenSelection): Promise<[condition: string, value: Parameter]> {
  if ('userName' in selection) {
    const user = await findUser(inside, selection.userName)
    if (user === undefined) throw unknownUser(selection.userName)
    return ['user_id = $1', user]
  }
  const [condition, value] = 'id' in selection ? ['id = $1', selection.id] : ['hash = $1', selection.hash]
  const found = await inside.query(`select 1 from plantstore.tokens where ${condition}`, [value])
  if (found.length === 0) throw new AppError('token_not_found', { message: 'There is no such token.' })
  return [condition, value]
}
