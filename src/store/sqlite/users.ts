import type { Database } from 'bun:sqlite'
import { PAGE_ROWS, type Store } from '../../domain/store.ts'
import type { User, UserId } from '../../domain/token.ts'
import { DELETE_BATCH_PLANTS } from '../limits.ts'
import { deleteInBatches, fromRow, type Row, userNotFound } from '../rows.ts'
import type { Connections } from './connections.ts'
import { rowsOf } from './driver.ts'
import type { PlantQuota } from './writing/quota.ts'

/** Users in SQLite. */
export function users({ reader, read, write, emptyWal }: Connections) {
  return {
    listUsers: ({ after = '', limit = PAGE_ROWS } = {}) =>
      read(() => {
        const select = reader.prepare<Row, [string, number]>(`
          select name, created_at_ms as "createdAtMs", blocked_at_ms as "blockedAtMs",
            (select count(*) from plants where user_id = users.id) as plants,
            (select count(*) from tokens where user_id = users.id) as tokens
          from users where name > ?1 order by name limit ?2`)
        return select.all(after, limit).map(fromRow<User>)
      }),

    setUserBlock: (name, blockedAtMs) => write(['setUserBlock', name, blockedAtMs]),

    async deleteUser(name, options = {}) {
      const { user, total } = await read(() => {
        const id = requireUser(reader, name)
        const select = reader.prepare<unknown, [UserId]>('select count(*) from plants where user_id = ?1')
        return { user: id, total: Number(select.values(id)[0]?.[0]) }
      })
      options.signal?.throwIfAborted()
      // Without tokens no new request writes for this user. The last batch also deletes what earlier requests still write.
      const tokens = await write(['deleteTokensOfUser', user])
      const plants = await deleteInBatches(total, () => write(['deletePlantsOrUser', user]), options)
      // The WAL still has the deleted rows. If a reader needs it, the server's next checkpoints empty it.
      await emptyWal()
      return { plants, tokens }
    },
  } satisfies Partial<Store>
}

/** The identifier of a user. Rejects with `user_not_found`. */
export function requireUser(db: Database, name: string): UserId {
  const select = db.prepare<unknown, [string]>('select id from users where name = ?1')
  const [row] = rowsOf<[id: bigint]>(select.values(name))
  if (row === undefined) throw userNotFound(name)
  return Number(row[0])
}

/** Stores a user if there is none of that name. Returns whether it did. */
export function insertUser(writer: Database, name: string, nowMs: number): boolean {
  const insert = 'insert into users (name, created_at_ms) values (?1, ?2) on conflict do nothing'
  return writer.run(insert, [name, nowMs]).changes > 0
}

/** The writes that block or delete a user. */
export const userWrites = (writer: Database, quota?: PlantQuota) => ({
  setUserBlock(name: string, blockedAtMs: number | undefined): boolean {
    const update = 'update users set blocked_at_ms = ?2 where id = ?1 and (blocked_at_ms is null) <> (?2 is null)'
    return writer.run(update, [requireUser(writer, name), blockedAtMs ?? null]).changes > 0
  },

  deleteTokensOfUser: (user: UserId): number => writer.run('delete from tokens where user_id = ?1', [user]).changes,

  /** Deletes a batch of the user's plants, and with the last of them the user. */
  deletePlantsOrUser(user: UserId): number {
    const { changes: plants } = writer.run(
      'delete from plants where user_id = ?1 and id in (select id from plants where user_id = ?1 order by id limit ?2)',
      [user, DELETE_BATCH_PLANTS],
    )
    quota?.record(user, -plants)
    if (plants < DELETE_BATCH_PLANTS) {
      writer.run('delete from tokens where user_id = ?1', [user])
      writer.run('delete from users where id = ?1', [user])
    }
    return plants
  },
})
