import { PLANT_FIELDS } from '../../../domain/plant.ts'
import type { UserId } from '../../../domain/token.ts'
import { COUNTED_USERS_MAX, GROUP_MAX_WRITES } from '../../limits.ts'
import type { Client } from '../connection.ts'
import {
  BEYOND_QUOTA,
  groupStatement,
  indexOf,
  insertPlants,
  type PlantWrite,
  parametersOf,
  type SendGroup,
} from './statements.ts'

type CreatesByUser = ReadonlyMap<UserId, readonly PlantWrite[]>

/**
 * Sends creates within a quota of plants per user.
 *
 * To count a million plants takes 60 ms, so a writer remembers the counts of users. The ledger tells how many groups the other
 * writers have written since, and each of them created at most `GROUP_MAX_WRITES` plants. While that leaves room for all creates
 * of a group, the writer sends it without counting. Two servers that write at the same moment do not see each other's groups.
 */
export function sendWithin(quotaPlants: number, client: Client): SendGroup {
  const known = rememberCounts(quotaPlants)

  return async (entry, plants, leftMs) => {
    known.useEntry(entry.id)
    const parameters = parametersOf(entry, plants, client)
    const creates = Map.groupBy(plants, ({ user }) => user)
    const safeGroups = known.safeGroups(creates)
    if (safeGroups !== undefined) {
      const [row] = await client.query<[refused: bigint[]]>(CREATE_IF_SAFE, [...parameters, safeGroups], leftMs())
      if (row !== undefined) {
        known.recordCreates(plants, row[0])
        return row[0]
      }
    }
    const { groups, users, counts } = known.exact(creates)
    const [row] = await client.query<[refused: bigint[], groups: bigint, users: bigint[], counts: bigint[]]>(
      CREATE_COUNTED,
      [...parameters, quotaPlants, groups, client.column(users, 'int8'), client.column(counts, 'int8')],
      leftMs(),
    )
    if (row === undefined) return undefined
    const [refused, ...counted] = row
    known.recordCounts(...counted)
    known.recordCreates(plants, refused)
    return refused
  }
}

/** Remembers how many plants users had when the other writers had written so many groups. */
function rememberCounts(quotaPlants: number) {
  const known = new Map<UserId, { plants: number; readonly groups: number }>()
  /** The groups of the other writers at the last count, and whether they had written since the count before. */
  let latest = 0
  let othersWrite = false
  let entryId = ''

  return {
    /** Forgets all with a new entry: the groups of the old one are now among those of the others. */
    useEntry(id: string): void {
      if (id !== entryId) known.clear()
      entryId = id
    },
    /** Until the others have written so many groups, there is room for these creates. `undefined` if that is unlikely. */
    safeGroups(creates: CreatesByUser): number | undefined {
      const safe = creates.entries().map(([user, { length }]) => {
        const { plants = quotaPlants, groups = 0 } = known.get(user) ?? {}
        return groups + Math.floor((quotaPlants - plants - length) / GROUP_MAX_WRITES)
      })
      const groups = Math.min(...safe)
      return groups > latest || (groups === latest && !othersWrite) ? groups : undefined
    },
    /** The counts that are exact while the others have written so many groups. They save counting for users without room. */
    exact(creates: CreatesByUser) {
      const users = [...creates.keys()].filter((user) => known.get(user)?.groups === latest)
      return { groups: latest, users, counts: users.map((user) => known.get(user)?.plants ?? 0) }
    },
    recordCounts(groups: bigint, users: readonly bigint[], counts: readonly bigint[]): void {
      othersWrite = Number(groups) !== latest
      latest = Number(groups)
      if (known.size + users.length > COUNTED_USERS_MAX) known.clear()
      for (const [index, user] of users.entries()) {
        known.set(Number(user), { plants: Number(counts[index]), groups: latest })
      }
    },
    recordCreates(plants: readonly PlantWrite[], refused: readonly bigint[]): void {
      const indexes = new Set(refused.map(indexOf))
      const created = plants.filter((_, index) => !indexes.has(index))
      for (const [user, writes] of Map.groupBy(created, ({ user }) => user)) {
        const count = known.get(user)
        // Of equal creates only the first one creates a plant.
        if (count !== undefined) count.plants += new Set(writes.map(({ id }) => id)).size
      }
    },
  }
}

/** The parameters behind those of every statement. */
const [FIRST, SECOND, THIRD, FOURTH] = [5, 6, 7, 8].map((number) => `$${number + PLANT_FIELDS.length}`)

const OTHER_GROUPS = 'select coalesce(sum(groups), 0)::int8 as groups from plantstore.writers where id <> $1'

const CREATE_IF_SAFE = groupStatement(insertPlants(), { gate: `and (${OTHER_GROUPS}) <= ${FIRST}` })

/** The table `beyond` has the new plants for which there is no room. */
const CREATE_COUNTED = groupStatement(
  insertPlants('where (wanted.user_id, wanted.id) not in (select user_id, id from beyond)'),
  {
    tables: `, others as (${OTHER_GROUPS}), counted as (
      select asked.user_id, creates, coalesce(exact.plants, (
        select count(*) from (
          select 1 from plantstore.plants where plants.user_id = asked.user_id limit ${FIRST}
        ) as existing
      )) as plants
      from (select user_id, count(*) as creates from wanted group by user_id) as asked cross join others
      left join unnest(${THIRD}::int8[], ${FOURTH}::int8[]) as exact (user_id, plants)
        on exact.user_id = asked.user_id and others.groups = ${SECOND}
    ), beyond as (
      select user_id, id from (
        select user_id, id, plants + row_number() over (partition by user_id order by min(number)) as place
        from wanted join counted using (user_id)
        where plants + creates > ${FIRST} and not exists (
          select 1 from plantstore.plants where plants.user_id = wanted.user_id and plants.id = wanted.id
        )
        group by user_id, id, plants
      ) as created where place > ${FIRST}
    )`,
    refusals: `when (wanted.user_id, wanted.id) in (select user_id, id from beyond) then number + ${BEYOND_QUOTA}`,
    results: `, (select groups from others), array(select user_id from counted order by user_id),
      array(select plants from counted order by user_id)`,
  },
)
