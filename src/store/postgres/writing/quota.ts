import type { UserId } from '../../../domain/token.ts'
import { GROUP_MAX_WRITES } from '../../../engine/group-queue.ts'
import { mayMake } from '../../preconditions.ts'
import { arrayParameter, columns, type Query } from '../driver.ts'
import { keyOf, type PlantWrite } from './statements.ts'

/**
 * Finds the creates and puts for which their users have no room within a quota. A plant that exists needs no room.
 *
 * The transaction locks the users, and counts the plants of those who get new ones. The lock waits for inserts of other servers,
 * which have locked the user for their foreign key, and keeps back later ones. So the quota is exact for any number of servers.
 */
export async function findOverQuota(
  query: Query,
  plants: readonly PlantWrite[],
  quotaPlants: number,
): Promise<ReadonlySet<PlantWrite>> {
  const makes = plants.filter(({ expected }) => mayMake(expected))
  const users = makes.map(({ user }) => user)
  // A user who does not exist is not locked, and has no limit here but a quota of 0, because the create refuses this user itself.
  const locked = await query<{ readonly id: bigint }>(LOCK_USERS, columns('int8', [...new Set(users)]))
  const ids = makes.map(({ id }) => id)
  const rows = await query<Record<'user' | 'id', bigint>>(SELECT_STORED, columns('int8', users, ids))
  const stored = new Set(rows.map(keyOf))
  // A put that replaces a plant needs no room, and a million plants take 90 ms to count.
  const growing = new Set(makes.filter((plant) => !stored.has(keyOf(plant))).map(({ user }) => user))
  const counted = locked.map(({ id }) => Number(id)).filter((id) => growing.has(id))
  const counts = counted.map(async (user): Promise<[UserId, number]> => {
    const [stored] = await query<{ readonly plants: bigint }>(COUNT_PLANTS, [user, quotaPlants])
    return [user, quotaPlants - Number(stored?.plants)]
  })
  const rooms = new Map(await Promise.all(counts))
  const overQuota = makes.filter((plant) => {
    const [key, room] = [keyOf(plant), rooms.get(plant.user) ?? (quotaPlants === 0 ? 0 : Number.POSITIVE_INFINITY)]
    if (stored.has(key)) return false
    if (room <= 0) return true
    rooms.set(plant.user, room - 1)
    stored.add(key)
    return false
  })
  return new Set(overQuota)
}

/** In one order, so that two servers do not wait for each other. */
const LOCK_USERS = `
  select id from plantstore.users where id = any(${arrayParameter(1, 'int8')}::int8[]) order by id for update`

/** Citus refuses one statement that counts the plants of several users up to a limit. */
const COUNT_PLANTS = `
  select count(*) as plants from (select 1 from plantstore.plants where user_id = $1 order by id limit $2) as stored`

const SELECT_STORED = `
  select plants.user_id as "user", plants.id from plantstore.plants
  join unnest(${arrayParameter(1, 'int8')}, ${arrayParameter(2, 'int8')}) with ordinality as wanted (user_id, id, number)
  on wanted.user_id = plants.user_id and wanted.id = plants.id and number between 1 and ${GROUP_MAX_WRITES}`
