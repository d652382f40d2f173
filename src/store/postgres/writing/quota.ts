import type { UserId } from '../../../domain/token.ts'
import type { Client, Transaction } from '../driver.ts'
import { CREATE_PLANTS, type PlantWrite, parametersOf, type Refused, type SendGroup } from './statements.ts'

/**
 * Sends creates within a quota of plants per user. One transaction locks the users of the group, counts their plants and creates.
 * The lock waits for inserts of other servers, which have locked the user for their foreign key, and keeps back later ones. So the
 * quota is exact, however many servers create.
 */
export function sendWithin(quotaPlants: number, client: Client): SendGroup {
  return (entry, plants, leftMs) =>
    client.transaction(async (inside) => {
      const beyond = await findBeyond(inside, client, plants, quotaPlants)
      const [row] = await inside.query<Refused>(CREATE_PLANTS, parametersOf(entry, plants, client, beyond))
      return row?.[0]
    }, leftMs())
}

/** Returns the creates for which their users have no room. A plant that exists needs no room. */
async function findBeyond(
  { query }: Transaction,
  { column }: Client,
  plants: readonly PlantWrite[],
  quotaPlants: number,
): Promise<ReadonlySet<PlantWrite>> {
  const users = plants.map(({ user }) => user)
  // The creates of a user who does not exist are refused as such: the user is not locked, and has any room.
  const locked = await query<[bigint]>(LOCK_USERS, [column([...new Set(users)], 'int8')])
  const counts = locked.map(async ([user]): Promise<[UserId, number]> => {
    const [[stored] = [0n]] = await query<[bigint]>(COUNT_PLANTS, [user, quotaPlants])
    return [Number(user), quotaPlants - Number(stored)]
  })
  const rooms = new Map(await Promise.all(counts))
  const ids = plants.map(({ id }) => id)
  const rows = await query(SELECT_STORED, [column(users, 'int8'), column(ids, 'int8')])
  const stored = new Set(rows.map(String))
  const beyond = plants.filter(({ user, id }) => {
    const [key, room] = [String([user, id]), rooms.get(user) ?? Number.POSITIVE_INFINITY]
    if (stored.has(key)) return false
    if (room <= 0) return true
    rooms.set(user, room - 1)
    stored.add(key)
    return false
  })
  return new Set(beyond)
}

/** In one order, so that two servers do not wait for each other. */
const LOCK_USERS = 'select id from plantstore.users where id = any($1::int8[]) order by id for update'

/** Citus refuses one statement that counts the plants of several users up to a limit. */
const COUNT_PLANTS = `
  select count(*) from (select 1 from plantstore.plants where user_id = $1 order by id limit $2) as stored`

const SELECT_STORED = `
  select plants.user_id, plants.id from plantstore.plants
  join unnest($1::int8[], $2::int8[]) as wanted (user_id, id) on wanted.user_id = plants.user_id and wanted.id = plants.id`
