import { type NewToken, PAGE_ROWS, type Tokens } from '../../domain/store.ts'
import type { Token, TokenId } from '../../domain/token.ts'
import { fromRow, type Row } from '../rows.ts'
import { compareTokens, NONE_CREATED, planRotation, selectTokens, tokenNotFound } from '../token-rules.ts'
import { type Connections, READ_ALL_TIMEOUT_MS } from './connections.ts'
import { columns, type Query } from './driver.ts'
import { insertRows } from './tables.ts'
import { insertUsers, nextIds, requireUser } from './users.ts'

const SELECT = selectTokens('plantstore.')

/** Tokens in PostgreSQL. The database holds the hash of a token, but not its text. */
export function tokens({ read, changeTokens, versions, deadlines }: Connections) {
  return {
    async findToken(hash) {
      const [row] = await read<Row>(`${SELECT} where tokens.hash = $1`, [hash])
      return row && fromRow<Token>(row)
    },

    createTokens: (tokens, { ifNone = false } = {}) =>
      changeTokens(async (query) => {
        if (ifNone && (await query('select 1 from plantstore.tokens limit 1')).length > 0) return NONE_CREATED
        const { missing, refused } = compareTokens(tokens, await findStored(query, tokens))
        return { created: missing.length, ...(await insertTokens(query, missing)), refused }
      }),

    async listTokens({ userName, after = 0, limit = PAGE_ROWS } = {}) {
      const [condition, ofUser] = userName === undefined ? ['', []] : ['users.name = $3 and', [userName]]
      const select = `${SELECT} where ${condition} tokens.id > $1 order by tokens.id limit $2`
      const rows = await read<Row>(select, [after, limit, ...ofUser], READ_ALL_TIMEOUT_MS)
      if (rows.length === 0 && userName !== undefined) await requireUser(read, userName)
      return rows.map(fromRow<Token>)
    },

    revokeTokens: (selection, nowMs) =>
      changeTokens(async (query, announce) => {
        const isUser = 'userName' in selection
        const user = isUser
          ? await requireUser(query, selection.userName)
          : (await requireToken(query, selection.id)).userId
        announce(user)
        const update = `update plantstore.tokens set revoked_at_ms = $2
          where ${isUser ? 'user_id' : 'id'} = $1 and revoked_at_ms is null returning id`
        return (await query(update, [isUser ? user : selection.id, nowMs])).length
      }),

    rotateToken: (id, successor, overlapMs) =>
      changeTokens(async (query, announce) => {
        const old = await requireToken(query, id)
        announce(old.userId)
        const { column, oldEndsAtMs } = planRotation(old, successor.createdAtMs, overlapMs)
        const { firstId: replacedBy } = await insertTokens(query, [successor])
        const update = `update plantstore.tokens set replaced_by = $2, ${column} = $3 where id = $1`
        await query(update, [id, replacedBy, oldEndsAtMs])
        return { id: replacedBy, oldEndsAtMs }
      }),

    async touchTokens(lastUsedAtMs, nowMs) {
      // Written twice, it is the same. So it can be repeated like a read. But it may have to wait for a lock (`STANDSTILL_MAX`).
      await read(
        `update plantstore.tokens set last_used_at_ms = used.at_ms
         from unnest($1::int8[], $2::int8[]) as used (id, at_ms)
         where tokens.id = used.id and (last_used_at_ms between used.at_ms and $3) is not true`,
        [...columns('int8', [...lastUsedAtMs.keys()], [...lastUsedAtMs.values()]), nowMs],
        deadlines.answerMs,
      )
    },

    ...versions,
  } satisfies Tokens
}

/** The stored tokens with the hashes of these, at the same indexes. Hashes are sent in hexadecimal, as by `insertRows`. */
async function findStored(query: Query, tokens: readonly NewToken[]) {
  const hashes = tokens.map(({ hash }) => hash.toHex())
  const rows = await query<Row & { readonly number: bigint }>(
    `${selectTokens('plantstore.', ', number')}
     join unnest($1::text[]) with ordinality as wanted (hash, number) on tokens.hash = decode(wanted.hash, 'hex')`,
    columns('text', hashes),
  )
  const stored: Token[] = []
  for (const { number, ...row } of rows) stored[Number(number) - 1] = fromRow(row)
  return stored
}

/** See `Tokens.createTokens`. */
async function insertTokens(query: Query, tokens: readonly NewToken[]) {
  const { users, newUsers } = await insertUsers(query, tokens)
  const firstId = await nextIds(query, 'last_token_id', tokens.length)
  const rows = tokens.map(({ userName, hash, scope, label, createdAtMs, expiresAtMs }, index) => {
    return [firstId + index, users.get(userName)?.id, hash, scope, label, createdAtMs, expiresAtMs]
  })
  await insertRows(query, 'tokens', rows)
  return { firstId, newUsers }
}

async function requireToken(query: Query, id: TokenId): Promise<Token> {
  const [row] = await query<Row>(`${SELECT} where tokens.id = $1`, [id])
  if (row === undefined) throw tokenNotFound()
  return fromRow(row)
}
