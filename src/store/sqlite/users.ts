import type { Database } from 'bun:sqlite'
import type { Store } from '../../domain/store.ts'
import type { UserId } from '../../domain/token.ts'
import { DELETE_BATCH_PLANTS, DELETE_PAUSE_MS } from '../limits.ts'
import { toUser, type UserRow, userNotFound } from '../rows.ts'
import type { Connections } from './connections.ts'

/** Users in SQLite. */
export function users({ reader, read, write, emptyWal }: Connections) {
  return {
    listUsers: () =>
      read(() => {
        const select = reader.prepare(`select name, created_at_ms,
            (select count(*) from plants where user_id = users.id),
            (select count(*) from tokens where user_id = users.id)
          from users order by name`)
        return (select.values() as UserRow[]).map(toUser)
      }),

    async deleteUser(name, { onProgress, signal } = {}) {
      const { user, total } = await read(() => {
        const found = requireUser(reader, name)
        return { user: found, total: countPlants(reader, found) }
      })
      signal?.throwIfAborted()
      // Without tokens no new request writes for this user. The last batch also deletes what earlier requests still write.
      const tokens = await write(['deleteTokensOfUser', user])
      let plants = 0
      for (;;) {
        await onProgress?.(plants, total)
        signal?.throwIfAborted()
        const batch = await write(['deletePlantsOrUser', user])
        plants += batch.plants
        if (batch.userIsGone) break
        await Bun.sleep(DELETE_PAUSE_MS)
      }
      // The WAL still has the deleted rows. If a reader needs it, the server's next checkpoints empty it.
      await emptyWal()
      return { plants, tokens }
    },
  } satisfies Partial<Store>
}

/** The identifier of a user. Rejects with `user_not_found`. */
export function requireUser(db: Database, name: string): UserId {
  const [row] = db.prepare<unknown, [string]>('select id from users where name = ?1').values(name) as [bigint][]
  if (row === undefined) throw userNotFound(name)
  return Number(row[0])
}

function countPlants(db: Database, user: UserId): number {
  const select = db.prepare<unknown, [UserId]>('select count(*) from plants where user_id = ?1')
  const [[count] = [0n]] = select.values(user) as [bigint][]
  return Number(count)
}

/** The writes that delete a user. */
export const userWrites = (writer: Database) => ({
  deleteTokensOfUser: (user: UserId): number => writer.run('delete from tokens where user_id = ?1', [user]).changes,

  /** Deletes a batch of the user's plants, and with the last of them the user. */
  deletePlantsOrUser(user: UserId): { readonly plants: number; readonly userIsGone: boolean } {
    const { changes: plants } = writer.run(
      'delete from plants where user_id = ?1 and id in (select id from plants where user_id = ?1 order by id limit ?2)',
      [user, DELETE_BATCH_PLANTS],
    )
    const userIsGone = plants < DELETE_BATCH_PLANTS
    if (userIsGone) {
      writer.run('delete from tokens where user_id = ?1', [user])
      writer.run('delete from users where id = ?1', [user])
    }
    return { plants, userIsGone }
  },
})
