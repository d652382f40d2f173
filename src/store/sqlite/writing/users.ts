import type { Database } from 'bun:sqlite'
import type { UserId } from '../../../domain/token.ts'
import { DELETE_BATCH_PLANTS } from '../../rows.ts'
import { findUser, requireUser } from '../lookups.ts'
import type { PlantQuota } from './quota.ts'

/** The writes that block or delete a user. */
export const userWrites = (writer: Database, quota?: PlantQuota) => ({
  setUserBlock(name: string, blockedAtMs: number | null, createsUser: boolean): boolean {
    if (createsUser && findUser(writer, name) === undefined) insertUser(writer, name, blockedAtMs)
    const update = 'update users set blocked_at_ms = ?2 where id = ?1 and (blocked_at_ms is null) <> (?2 is null)'
    return writer.run(update, [requireUser(writer, name), blockedAtMs]).changes > 0
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

/** Stores a user whose name is new, and returns the identifier. */
export const insertUser = (writer: Database, name: string, createdAtMs: number | null): UserId =>
  Number(writer.run('insert into users (name, created_at_ms) values (?1, ?2)', [name, createdAtMs]).lastInsertRowid)
