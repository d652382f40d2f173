import { AppError } from '../../domain/error.ts'
import type { Store } from '../../domain/store.ts'
import { DELETE_BATCH_PLANTS, DELETE_PAUSE_MS } from '../limits.ts'
import type { Transaction } from './connection.ts'
import type { Connections } from './connections.ts'
import { READ_ALL_TIMEOUT_MS } from './reads.ts'
import { lockTokens } from './tokens.ts'

type UserRow = [name: string, createdAtMs: bigint, plants: bigint, tokens: bigint]

const COUNT_PLANTS =
  'select count(*) from plantstore.plants where user_id = (select id from plantstore.users where name = $1)'
const DELETE_TOKENS = 'delete from plantstore.tokens where user_id = $1 returning id'

/** Users in PostgreSQL. */
export function users({ read, transaction, versions }: Connections): UserMethods {
  return {
    async listUsers() {
      const rows = await read<UserRow>(
        `select name, created_at_ms,
           (select count(*) from plantstore.plants where plants.user_id = users.id),
           (select count(*) from plantstore.tokens where tokens.user_id = users.id)
         from plantstore.users order by name`,
        [],
        READ_ALL_TIMEOUT_MS,
      )
      return rows.map(([name, createdAtMs, plants, tokens]) => ({
        name,
        createdAtMs: Number(createdAtMs),
        plants: Number(plants),
        tokens: Number(tokens),
      }))
    },

    async deleteUser(name, { onProgress, signal } = {}) {
      const [[total] = [0n]] = await read<[bigint]>(COUNT_PLANTS, [name], READ_ALL_TIMEOUT_MS)
      signal?.throwIfAborted()
      // Without tokens no request begins a write for this user; one that had begun is caught by the last transaction.
      const { user, tokens } = await transaction(async (inside) => {
        await lockTokens(inside)
        const user = await findUser(inside, name)
        if (user === undefined) throw unknownUser(name)
        return { user, tokens: (await inside.query(DELETE_TOKENS, [user])).length }
      }).finally(versions.changed)
      let plants = 0
      for (;;) {
        await onProgress?.(plants, Number(total))
        signal?.throwIfAborted()
        const batch = await transaction((inside) => deleteBatch(inside, user))
        plants += batch
        if (batch < DELETE_BATCH_PLANTS) break
        await Bun.sleep(DELETE_PAUSE_MS)
      }
      plants += await transaction((inside) => deleteRest(inside, user)).finally(versions.changed)
      return { plants, tokens }
    },
  }
}

/** The part of the store that this file is. */
export type UserMethods = Pick<Store, 'listUsers' | 'deleteUser'>

/** The identifier of the user with this name, if there is one. */
export async function findUser({ query }: Transaction, name: string): Promise<bigint | undefined> {
  const [row] = await query<[bigint]>('select id from plantstore.users where name = $1', [name])
  return row?.[0]
}

/** Why something is refused that is about a user. */
export const unknownUser = (name: string): AppError =>
  new AppError('user_not_found', { message: `There is no user ${name}.` })

async function deleteBatch({ query }: Transaction, user: bigint): Promise<number> {
  const deleted = await query(
    `delete from plantstore.plants where user_id = $1
       and id in (select id from plantstore.plants where user_id = $1 order by id limit $2) returning id`,
    [user, DELETE_BATCH_PLANTS],
  )
  return deleted.length
}

/** Deletes the user with what has come meanwhile. Returns how many plants that were. */
async function deleteRest(inside: Transaction, user: bigint): Promise<number> {
  const { query } = inside
  await lockTokens(inside)
  // From here on nobody can create a plant for this user.
  await query('select id from plantstore.users where id = $1 for update', [user])
  const plants = await query('delete from plantstore.plants where user_id = $1 returning id', [user])
  await query(DELETE_TOKENS, [user])
  await query('delete from plantstore.users where id = $1', [user])
  return plants.length
}
