import { type NewToken, PAGE_ROWS, type Store } from '../../domain/store.ts'
import type { Token, TokenId } from '../../domain/token.ts'
import { compareTokens, endOfReplaced, type TokenRow, tokenNotFound, toToken } from '../rows.ts'
import { type Connections, READ_ALL_TIMEOUT_MS } from './connections.ts'
import { ANSWER_TIMEOUT_MS, type Transaction } from './driver.ts'
import { insertUsers, nextIds, requireUser } from './users.ts'

const COLUMNS = `tokens.id, tokens.user_id, users.name, tokens.scope, tokens.label,
  tokens.created_at_ms, tokens.expires_at_ms, tokens.revoked_at_ms, tokens.last_used_at_ms,
  tokens.replaced_by, users.blocked_at_ms`
const TABLES = 'plantstore.tokens join plantstore.users on users.id = tokens.user_id'
const SELECT = `select ${COLUMNS} from ${TABLES}`

/** Tokens in PostgreSQL. The database holds the hash of a token, but not its text. */
export function tokens({ read, changeTokens, column }: Connections) {
  return {
    async findToken(hash) {
      const [row] = await read<TokenRow>(`${SELECT} where tokens.hash = $1`, [hash])
      return row && toToken(row)
    },

    createTokens: (tokens) => changeTokens((inside) => insertTokens(inside, tokens, column)),

    importTokens: (tokens) =>
      changeTokens(async (inside) => {
        const stored = await findStored(inside, tokens, column)
        const { missing, refused } = compareTokens(tokens, stored)
        const { newUsers } = await insertTokens(inside, missing, column)
        return { created: missing.length, newUsers, refused }
      }),

    createFirstToken: (token) =>
      changeTokens(async (inside) => {
        const found = await inside.query('select 1 from plantstore.tokens limit 1')
        if (found.length > 0) return false
        await insertTokens(inside, [token], column)
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
        const { column: endColumn, oldEndsAtMs } = endOfReplaced(old, successor.createdAtMs, overlapMs)
        const { firstId: replacedBy } = await insertTokens(inside, [successor], column)
        const update = `update plantstore.tokens set replaced_by = $2, ${endColumn} = $3 where id = $1`
        await inside.query(update, [id, replacedBy, oldEndsAtMs])
        return { id: replacedBy, oldEndsAtMs }
      }),

    async touchTokens(lastUsedAtMs, nowMs) {
      // Written twice, it is the same. So it can be repeated like a read. But it may have to wait for a lock (`STANDSTILL_MAX`).
      await read(
        `update plantstore.tokens set last_used_at_ms = used.at_ms
         from unnest($1::int8[], $2::int8[]) as used (id, at_ms)
         where tokens.id = used.id and (last_used_at_ms between used.at_ms and $3) is not true`,
        [column([...lastUsedAtMs.keys()], 'int8'), column([...lastUsedAtMs.values()], 'int8'), nowMs],
        ANSWER_TIMEOUT_MS,
      )
    },
  } satisfies Partial<Store>
}

/** The stored tokens with the hashes of these, at the same indexes. */
async function findStored({ query }: Transaction, tokens: readonly NewToken[], column: Connections['column']) {
  const rows = await query<[place: bigint, ...TokenRow]>(
    `select place, ${COLUMNS} from ${TABLES}
     join unnest($1::text[]) with ordinality as wanted (hash, place) on tokens.hash = decode(wanted.hash, 'hex')`,
    [column(tokens.map(hexOf), 'text')],
  )
  const stored: Token[] = []
  for (const [place, ...row] of rows) stored[Number(place) - 1] = toToken(row)
  return stored
}

/** The driver cannot send an array of bytes, so the hashes are sent in hexadecimal. */
const hexOf = ({ hash }: NewToken): string => hash.toHex()

/** See `Store.createTokens`. */
async function insertTokens(inside: Transaction, tokens: readonly NewToken[], column: Connections['column']) {
  const createdAtMs = new Map<string, number>()
  for (const token of tokens) {
    if (!createdAtMs.has(token.userName)) createdAtMs.set(token.userName, token.createdAtMs)
  }
  const { users, newUsers } = await insertUsers(inside, createdAtMs, column)
  const firstId = await nextIds(inside, 'last_token_id', tokens.length)
  const columnOf = (type: 'int8' | 'text', value: (token: NewToken) => string | number | undefined) =>
    column(
      tokens.map((token) => value(token) ?? null),
      type,
    )
  await inside.query(
    `insert into plantstore.tokens (id, user_id, hash, scope, label, created_at_ms, expires_at_ms)
     select $1::int8 + place - 1, user_id, decode(hash, 'hex'), scope, label, created_at_ms, expires_at_ms
     from unnest($2::int8[], $3::text[], $4::text[], $5::text[], $6::int8[], $7::int8[])
       with ordinality as new (user_id, hash, scope, label, created_at_ms, expires_at_ms, place)`,
    [
      firstId,
      columnOf('int8', ({ userName }) => users.get(userName)),
      columnOf('text', hexOf),
      columnOf('text', ({ scope }) => scope),
      columnOf('text', ({ label }) => label),
      columnOf('int8', ({ createdAtMs }) => createdAtMs),
      columnOf('int8', ({ expiresAtMs }) => expiresAtMs),
    ],
  )
  return { firstId, newUsers }
}

async function requireToken({ query }: Transaction, id: TokenId): Promise<Token> {
  const [row] = await query<TokenRow>(`${SELECT} where tokens.id = $1`, [id])
  if (row === undefined) throw tokenNotFound()
  return toToken(row)
}
