import { PLANT_FIELDS } from '../../../domain/plant.ts'
import type { UserId } from '../../../domain/token.ts'
import { COUNTED_USERS_MAX, GROUP_MAX_WRITES } from '../../limits.ts'
import type { Client, Transaction } from '../connection.ts'
import {
  CREATE_PLANTS,
  groupStatement,
  INSERT_PLANTS,
  type LedgerEntry,
  type PlantWrite,
  parametersOf,
  type Refused,
  type SendGroup,
} from './statements.ts'

/**
 * Sends creates within a quota of plants per user.
 *
 * To count a million plants takes 60 ms, so a writer remembers counts. The ledger tells how many groups the other writers have
 * written since, and each of them created at most `GROUP_MAX_WRITES` plants. While that leaves room for all creates of a group,
 * the writer sends it without counting. It reserves room for one more group of each other writer, which may be under way. Of
 * several such groups, the one that reads the ledger last has reserved room for all others.
 *
 * Otherwise the writer locks the users and counts, in one transaction. The lock waits for inserts of others that have checked
 * their foreign key, and keeps back all others. So only a group without a count that runs while another writer finishes one
 * group and counts for the next could exceed the quota, by its own creates.
 */
export function sendWithin(quotaPlants: number, client: Client): SendGroup {
  /** The most plants that a user had when the others had written so many groups. */
  const known = new Map<UserId, { plants: number; readonly groups: number }>()
  let lastEntry: LedgerEntry | undefined

  /** The others may write so many groups, and all creates still have room. Less than 0 if that is not known. */
  const safeGroups = (creates: ReadonlyMap<UserId, readonly PlantWrite[]>): number => {
    let safe = Number.MAX_SAFE_INTEGER
    for (const [user, { length }] of creates) {
      const count = known.get(user)
      if (count === undefined || count.plants + length > quotaPlants) return -1
      safe = Math.min(safe, count.groups + Math.floor((quotaPlants - count.plants - length) / GROUP_MAX_WRITES))
    }
    return safe
  }

  /** Locks and counts. Returns the creates for which there is no room. A plant that exists needs no room. */
  const findBeyond = async ({ query }: Transaction, plants: readonly PlantWrite[], ownGroups: number) => {
    const [owners, ids] = [plants.map(({ user }) => user), plants.map(({ id }) => id)]
    const users = [...new Set(owners)]
    const locked = new Set(
      (await query<[bigint]>(LOCK_USERS, [client.column(users, 'int8')])).map(([id]) => Number(id)),
    )
    const rooms = new Map<UserId, number>()
    const count = async (user: UserId) => {
      const [[stored = 0n, groups = 0n] = []] = await query<[bigint, bigint]>(COUNT_PLANTS, [user, quotaPlants])
      known.set(user, { plants: Number(stored), groups: Number(groups) - ownGroups })
      // The creates of a user who does not exist are refused as such.
      if (locked.has(user)) rooms.set(user, quotaPlants - Number(stored))
    }
    await Promise.all(users.map(count))
    const rows = await query(SELECT_STORED, [client.column(owners, 'int8'), client.column(ids, 'int8')])
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

  return async (entry, plants, leftMs) => {
    // The groups of this writer's earlier entry are now among those of the others. An entry with a new id keeps its groups.
    if (entry !== lastEntry || known.size > COUNTED_USERS_MAX) known.clear()
    lastEntry = entry
    const creates = Map.groupBy(plants, ({ user }) => user)
    const safe = safeGroups(creates)
    const parameters = [...parametersOf(entry, plants, client), entry.groups + 1 + safe]
    let [row] = safe < 0 ? [] : await client.query<Refused>(CREATE_IF_SAFE, parameters, leftMs())
    row ??= await client.transaction(async (inside) => {
      const beyond = await findBeyond(inside, plants, entry.groups)
      const [counted] = await inside.query<Refused>(CREATE_PLANTS, parametersOf(entry, plants, client, beyond))
      return counted
    }, leftMs())
    for (const [user, { length }] of creates) {
      const count = known.get(user)
      if (count !== undefined) count.plants += length
    }
    return row?.[0]
  }
}

/** The sum counts this writer's own entry, too. */
const CREATE_IF_SAFE = groupStatement(
  INSERT_PLANTS,
  `and (select sum(groups + 1) from plantstore.writers) <= $${5 + PLANT_FIELDS.length}`,
)

const LOCK_USERS = 'select id from plantstore.users where id = any($1::int8[]) order by id for update'

/** Citus refuses one statement that counts the plants of several users up to a limit. */
const COUNT_PLANTS = `
  select count(*), (select sum(groups)::int8 from plantstore.writers)
  from (select 1 from plantstore.plants where user_id = $1 limit $2) as stored`

const SELECT_STORED = `
  select plants.user_id, plants.id from plantstore.plants
  join unnest($1::int8[], $2::int8[]) as wanted (user_id, id) on wanted.user_id = plants.user_id and wanted.id = plants.id`
