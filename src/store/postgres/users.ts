import type { FoundUser, NewToken, Users } from '../../domain/store.ts'
import { PAGE_ROWS, TOKEN_CHANGES_SEEN_WITHIN_MS } from '../../domain/store.ts'
import { NOBODY, type User, type UserId } from '../../domain/token.ts'
import { AppError } from '../../error.ts'
import { DELETE_BATCH_PLANTS, deleteInBatches } from '../delete-batches.ts'
import { fromRow, type Row } from '../rows.ts'
import { userNotFound } from '../token-rules.ts'
import { type Connections, READ_ALL_TIMEOUT_MS } from './connections.ts'
import { columns, type Query } from './driver.ts'
import { insertRows } from './tables.ts'

const LIST_USERS = `select id, name, created_at_ms as "createdAtMs", blocked_at_ms as "blockedAtMs" from plantstore.users
  where name collate "C" > $1 and name = coalesce($3, name) order by name collate "C" limit $2`
const COUNT_PLANTS =
  'select count(*) as plants from plantstore.plants where user_id = (select id from plantstore.users where name = $1)'
const BLOCK = 'update plantstore.users set blocked_at_ms = coalesce(blocked_at_ms, $2) where id = $1'
const DELETE_TOKENS = 'delete from plantstore.tokens where user_id = $1 returning id'
const DELETE_BATCH = `delete from plantstore.plants where user_id = $1
  and id in (select id from plantstore.plants where user_id = $1 order by id limit $2) returning id`

export function users({ read, changeTokens, deadlines }: Connections) {
  const countRows = async (table: 'plants' | 'tokens', users: readonly bigint[]) => {
    const select = `select user_id, count(*) as rows from plantstore.${table} where user_id = any($1) group by user_id`
    const counts = await read<Record<'user_id' | 'rows', bigint>>(select, columns('int8', users), READ_ALL_TIMEOUT_MS)
    return new Map(counts.map(({ user_id, rows }) => [user_id, rows]))
  }

  return {
    async listUsers({ name, after = '', limit = PAGE_ROWS } = {}) {
      const range = [after, limit, name ?? null]
      const found = await read<Row & { readonly id: bigint }>(LIST_USERS, range, READ_ALL_TIMEOUT_MS)
      const ids = found.map(({ id }) => id)
      // A statement of its own for each count: Citus refuses subqueries that count the rows of each user.
      const [plants, tokens] = [await countRows('plants', ids), await countRows('tokens', ids)]
      return found.map(({ id, ...user }) =>
        fromRow<User>({ ...user, plants: plants.get(id) ?? 0n, tokens: tokens.get(id) ?? 0n }),
      )
    },

    findUser: (name) => findUser(read, name),

    ensureUser: (name, createdAtMs) =>
      changeTokens((query) => ensureUser(query, name, createdAtMs), deadlines.repeatMs),

    setUserBlock: (name, blockedAtMs, createsUser = false) =>
      changeTokens(async (query, announce) => {
        if (createsUser) await insertUsers(query, [{ userName: name, createdAtMs: blockedAtMs ?? 0 }])
        const user = await requireUser(query, name)
        announce(user)
        const update = `update plantstore.users set blocked_at_ms = $2::int8
          where id = $1 and (blocked_at_ms is null) <> ($2::int8 is null) returning id`
        return (await query(update, [user, blockedAtMs ?? null])).length > 0
      }),

    async deleteUser(name, options = {}) {
      const [total] = await read<{ readonly plants: bigint }>(COUNT_PLANTS, [name], READ_ALL_TIMEOUT_MS)
      options.signal?.throwIfAborted()
      const { user, tokens } = await changeTokens(async (query, announce) => {
        const user = await requireUser(query, name)
        announce(user)
        await query(BLOCK, [user, Date.now()])
        return { user, tokens: (await query(DELETE_TOKENS, [user])).length }
      })
      // Then every server knows of the block, so none shows these plants to the user whom a JWT makes anew after the deletion.
      await Bun.sleep(TOKEN_CHANGES_SEEN_WITHIN_MS)
      const deleteBatch = () =>
        changeTokens(async (query, announce) => {
          announce(user)
          // The lock keeps earlier requests from creating plants for this user.
          await query('select id from plantstore.users where id = $1 for update', [user])
          const { length } = await query(DELETE_BATCH, [user, DELETE_BATCH_PLANTS])
          if (length === DELETE_BATCH_PLANTS) return length
          await query(DELETE_TOKENS, [user])
          await query('delete from plantstore.users where id = $1', [user])
          return length
        })
      return { plants: await deleteInBatches(Number(total?.plants), deleteBatch, options), tokens }
    },
  } satisfies Users
}

/** The identifier of the user with this name. Rejects with `user_not_found`. */
export async function requireUser(query: Query, name: string): Promise<UserId> {
  const user = await findUser(query, name)
  if (user === undefined) throw userNotFound(name)
  return user.id
}

/** The id of the user with a name, who is stored if missing. Rejects with `token_invalid` for a blocked one. */
async function ensureUser(query: Query, name: string, createdAtMs: number): Promise<UserId> {
  const { users } = await insertUsers(query, [{ userName: name, createdAtMs }])
  const user = users.get(name)
  if (user?.blockedAtMs !== undefined) throw new AppError('token_invalid')
  return user?.id ?? NOBODY
}

async function findUser(query: Query, name: string): Promise<FoundUser | undefined> {
  const select = 'select id, blocked_at_ms as "blockedAtMs" from plantstore.users where name = $1'
  const [row] = await query<Row>(select, [name])
  return row && fromRow<FoundUser>(row)
}

/** Stores the users of these tokens who are new. Returns all their users by name, and the new names. */
export async function insertUsers(query: Query, tokens: readonly Pick<NewToken, 'userName' | 'createdAtMs'>[]) {
  const byUser = Map.groupBy(tokens, ({ userName }) => userName)
  const names = [...byUser.keys()]
  const select = 'select name, id, blocked_at_ms as "blockedAtMs" from plantstore.users where name = any($1)'
  const known = await query<Row & Pick<User, 'name'>>(select, columns('text', names))
  const users = new Map(known.map((row) => [row.name, fromRow<FoundUser>(row)]))
  const newUsers = names.filter((name) => !users.has(name))
  if (newUsers.length === 0) return { users, newUsers }
  const firstId = await nextIds(query, 'last_user_id', newUsers.length)
  const rows = newUsers.map((name, index) => [firstId + index, name, byUser.get(name)?.[0]?.createdAtMs] as const)
  await insertRows(query, 'users', rows)
  for (const [id, name] of rows) users.set(name, { id, blockedAtMs: undefined })
  return { users, newUsers }
}

/** The first of so many consecutive identifiers that nothing has had before. */
export async function nextIds(query: Query, counter: 'last_user_id' | 'last_token_id', count: number) {
  const [row] = await query<{ readonly last: bigint }>(
    `update plantstore.counters set ${counter} = ${counter} + $1 returning ${counter} as last`,
    [count],
  )
  return Number(row?.last) - count + 1
}
