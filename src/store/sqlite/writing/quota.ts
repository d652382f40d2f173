import type { Database } from 'bun:sqlite'
import type { UserId } from '../../../domain/token.ts'

/** How many users have their plants counted in memory for a quota. For one more user, counting begins anew. */
export const COUNTED_USERS_MAX = 10_000

export type PlantQuota = ReturnType<typeof openQuota>

/**
 * The quota of plants of the connection that writes. Counts the plants of users who create some, each user once. A million
 * plants take 40 ms. A count is exact while `record` gets every change of this connection, and while `forget` is called after a
 * rollback and after each commit of another process.
 */
export function openQuota(writer: Database, quotaPlants: number) {
  const counts = new Map<UserId, number>()
  const selectCount = writer.prepare<unknown, [UserId, number]>(
    'select count(*) from (select 1 from plants where user_id = ?1 limit ?2)',
  )
  const count = (user: UserId): number => {
    const [[plants] = [0n]] = selectCount.values(user, quotaPlants + 1) as [bigint][]
    if (counts.size >= COUNTED_USERS_MAX) counts.clear()
    counts.set(user, Number(plants))
    return Number(plants)
  }
  return {
    /** Whether a user has as many plants as the quota allows. */
    isUsedUp: (user: UserId): boolean => (counts.get(user) ?? count(user)) >= quotaPlants,
    /** Records that a user has so many plants more or less. */
    record(user: UserId, change: number): void {
      const plants = counts.get(user)
      if (plants === undefined) return
      // Beyond the quota nobody has counted how many there are.
      if (plants > quotaPlants) counts.delete(user)
      else counts.set(user, plants + change)
    },
    forget: (): void => counts.clear(),
  }
}
