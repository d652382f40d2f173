import { PAGE_ROWS, type Users } from '../../domain/store.ts'
import type { User, UserId } from '../../domain/token.ts'
import type { Connections } from '../../engine/sqlite/connections.ts'
import { deleteInBatches } from '../delete-batches.ts'
import { fromRow, type Row } from '../rows.ts'
import { findUser, requireUser } from './lookups.ts'
import type { Writes } from './writing/writes.ts'

export function users({ reader, read, writer: { write, emptyWal } }: Connections<Writes>) {
  return {
    listUsers: ({ name, after = '', limit = PAGE_ROWS } = {}) =>
      read(() => {
        const select = reader.prepare<Row, [string, number, string | null]>(`
          select name, created_at_ms as "createdAtMs", blocked_at_ms as "blockedAtMs",
            (select count(*) from plants where user_id = users.id) as plants,
            (select count(*) from tokens where user_id = users.id) as tokens
          from users where name > ?1 and name = coalesce(?3, name) order by name limit ?2`)
        return select.all(after, limit, name ?? null).map(fromRow<User>)
      }),

    findUser: (name) => read(() => findUser(reader, name)),

    ensureUser: (name, createdAtMs) => write(['ensureUser', name, createdAtMs]),

    setUserBlock: (name, blockedAtMs, createsUser = false) =>
      write(['setUserBlock', name, blockedAtMs ?? null, createsUser]),

    async deleteUser(name, options = {}) {
      const { user, total } = await read(() => {
        const id = requireUser(reader, name)
        const select = reader.prepare<unknown, [UserId]>('select count(*) from plants where user_id = ?1')
        return { user: id, total: Number(select.values(id)[0]?.[0]) }
      })
      options.signal?.throwIfAborted()
      // From here on no new request writes for this user. The last batch also deletes what earlier requests still write.
      const tokens = await write(['blockForGood', user, Date.now()])
      const plants = await deleteInBatches(total, () => write(['deletePlantsOrUser', user]), options)
      // The WAL still has the deleted rows. If a reader needs it, the server's next checkpoints empty it.
      await emptyWal()
      return { plants, tokens }
    },
  } satisfies Users
}
