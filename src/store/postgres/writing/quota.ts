import { PLANT_FIELDS } from '../../../domain/plant.ts'
import type { UserId } from '../../../domain/token.ts'
import { COUNTED_USERS_MAX, GROUP_MAX_WRITES } from '../../limits.ts'
import type { Client } from '../connection.ts'
import {
  BEYOND_QUOTA,
  groupStatement,
  insertPlants,
  type PlantWrite,
  parametersOf,
  type SendGroup,
} from './statements.ts'

/**
 * Sends creates within a quota of plants per user.
 *
 * To count a million plants takes 60 ms, so a writer remembers counts. The ledger tells how many groups the other writers have
 * written since, and each of them created at most `GROUP_MAX_WRITES` plants. While that leaves room for all creates of a group,
 * the writer sends it without counting. Two servers that write at the same moment do not see each other's groups.
 */
export function sendWithin(quotaPlants: number, client: Client): SendGroup {
  /** The most plants that a user had when the others had written so many groups. */
  const known = new Map<UserId, { plants: number; readonly groups: number }>()
  let entryId = ''

  /** The group has room until the others have written so many groups. Less than 0 if that is not known. */
  const safeGroups = (creates: ReadonlyMap<UserId, readonly PlantWrite[]>): number => {
    let safe = Number.MAX_SAFE_INTEGER
    for (const [user, { length }] of creates) {
      const count = known.get(user)
      if (count === undefined || count.plants + length > quotaPlants) return -1
      safe = Math.min(safe, count.groups + Math.floor((quotaPlants - count.plants - length) / GROUP_MAX_WRITES))
    }
    return safe
  }

  return async (entry, plants, leftMs) => {
    // The groups of this writer's earlier entry are now among those of the others.
    if (entry.id !== entryId || known.size > COUNTED_USERS_MAX) known.clear()
    entryId = entry.id
    const parameters = parametersOf(entry, plants, client)
    const creates = Map.groupBy(plants, ({ user }) => user)
    const safe = safeGroups(creates)
    const [sent] = safe < 0 ? [] : await client.query<Result>(CREATE_IF_SAFE, [...parameters, safe], leftMs())
    const [row] = sent ? [sent] : await client.query<Result>(CREATE_COUNTED, [...parameters, quotaPlants], leftMs())
    if (row === undefined) return undefined
    const [refused, groups, users = [], counts = []] = row
    for (const [index, user] of users.entries()) {
      known.set(Number(user), { plants: Number(counts[index]), groups: Number(groups) })
    }
    for (const [user, { length }] of creates) {
      const count = known.get(user)
      if (count !== undefined) count.plants += length
    }
    return refused
  }
}

/** The refused creates. If it has counted, also the groups of the others, and the users with their plants before the group. */
type Result = [refused: bigint[], groups?: bigint, users?: bigint[], counts?: bigint[]]

/** The parameter behind those of every statement. */
const LIMIT = `$${5 + PLANT_FIELDS.length}`

const OTHER_GROUPS = 'select coalesce(sum(groups), 0)::int8 as groups from plantstore.writers where id <> $1'

const CREATE_IF_SAFE = groupStatement(insertPlants(), { gate: `and (${OTHER_GROUPS}) <= ${LIMIT}` })

/** The table `beyond` has the new plants for which there is no room. */
const CREATE_COUNTED = groupStatement(
  insertPlants('where (wanted.user_id, wanted.id) not in (select user_id, id from beyond)'),
  {
    tables: `, counted as (
      select user_id, creates, (
        select count(*) from (
          select 1 from plantstore.plants where plants.user_id = asked.user_id limit ${LIMIT}
        ) as existing
      ) as plants
      from (select user_id, count(*) as creates from wanted group by user_id) as asked
    ), beyond as (
      select user_id, id from (
        select user_id, id, plants + row_number() over (partition by user_id order by min(number)) as place
        from wanted join counted using (user_id)
        where plants + creates > ${LIMIT} and not exists (
          select 1 from plantstore.plants where plants.user_id = wanted.user_id and plants.id = wanted.id
        )
        group by user_id, id, plants
      ) as created where place > ${LIMIT}
    )`,
    refusals: `when (wanted.user_id, wanted.id) in (select user_id, id from beyond) then number + ${BEYOND_QUOTA}`,
    results: `, (${OTHER_GROUPS}), array(select user_id from counted order by user_id),
      array(select plants from counted order by user_id)`,
  },
)
