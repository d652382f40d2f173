import type { Database } from 'bun:sqlite'
import type { UserId } from '../../../domain/token.ts'
import { AppError } from '../../../error.ts'
import { DELETE_BATCH_PLANTS } from '../../delete-batches.ts'
import { findUser, requireUser } from '../lookups.ts'
import type { PlantQuota } from './quota.ts'

export const USER_CHANGES = {
  setUserBlock: 'tokens',
  ensureUser: 'tokens',
  blockForGood: 'tokens',
  deletePlantsOrUser: 'everything',
} as const

export const userWrites = (writer: Database, quota?: PlantQuota) => ({
  setUserBlock(name: string, blockedAtMs: number | null, createsUser: boolean): boolean {
    if (createsUser) insertUser(writer, name, blockedAtMs)
    const update = 'update users set blocked_at_ms = ?2 where id = ?1 and (blocked_at_ms is null) <> (?2 is null)'
    return writer.run(update, [requireUser(writer, name), blockedAtMs]).changes > 0
  },

  ensureUser(name: string, createdAtMs: number): UserId {
    const user = findUser(writer, name)
    if (user?.blockedAtMs !== undefined) throw new AppError('token_invalid')
    if (user === undefined) insertUser(writer, name, createdAtMs)
    return requireUser(writer, name)
  },

  /** Takes all access from a user who is about to be deleted. Returns the number of tokens that were deleted. */
  blockForGood(user: UserId, nowMs: number): number {
    writer.run('update users set blocked_at_ms = coalesce(blocked_at_ms, ?2) where id = ?1', [user, nowMs])
    return writer.run('delete from tokens where user_id = ?1', [user]).changes
  },

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

/** Stores a user unless the name is known. Returns whether it was new. */
export function insertUser(writer: Database, name: string, createdAtMs: number | null): boolean {
  const insert = 'insert into users (name, created_at_ms) values (?1, ?2) on conflict do nothing'
  return writer.run(insert, [name, createdAtMs]).changes > 0
}
