import type { ErrorKind } from '../../../domain/error.ts'
import { PLANT_FIELDS, type PlantValues } from '../../../domain/plant.ts'
import type { UserId } from '../../../domain/token.ts'
import { GROUP_MAX_WRITES } from '../../group-queue.ts'
import { FIELD_COLUMNS, PLANT_COLUMNS } from '../../tables.ts'
import { columns, type Parameter } from '../driver.ts'

/** The two kinds of writes, and why one is refused whose user exists. */
const REFUSALS = { create: 'plant_exists', delete: 'plant_not_found' } as const
export type WriteKind = keyof typeof REFUSALS

/** A plant to create or delete. A delete with values deletes the plant only while it has them, and else whatever it is. */
export interface PlantWrite<Kind extends WriteKind = WriteKind> {
  readonly user: UserId
  readonly id: bigint
  readonly values: Kind extends 'create' ? PlantValues : PlantValues | readonly []
}

/** Tells plants apart. */
export const keyOf = ({ user, id }: { readonly user: UserId | bigint; readonly id: bigint }): string => `${user} ${id}`

/** A row of the table `writers`: the groups that were written with this id, one after the other. */
export interface LedgerEntry {
  readonly id: string
  readonly openedAtMs: number
  groups: number
}

const FIELD_ARRAYS = PLANT_FIELDS.map((_, index) => `$${index + 5}::text[]`).join(', ')

/** A create that is refused because of a quota has this added to its number. */
const BEYOND_QUOTA = GROUP_MAX_WRITES

/**
 * Each group is one statement. The gate locks the writer's entry. It has no row if this group is not the writer's next one, or
 * the entry is closed. Refused writes are numbered from 1, or from -1 if the user does not exist.
 */
const groupStatement = (write: string): string => `with gate as (
    select id from plantstore.writers where id = $1 and groups = $2 and not is_closed for update
  ), wanted as (
    select * from unnest($3::int8[], $4::int8[], ${FIELD_ARRAYS}) with ordinality
      as wanted (user_id, id, ${FIELD_COLUMNS}, number)
  ), done as (${write})
  update plantstore.writers set groups = groups + 1, refused = array(
    select case when wanted.user_id is null then number + ${BEYOND_QUOTA}
      when not exists (select 1 from plantstore.users where users.id = wanted.user_id) then -number else number end
    from wanted left join done on done.user_id = wanted.user_id and done.id = wanted.id
    where done.id is null
  )
  where id = $1 and exists (select 1 from gate) returning refused`

const IS_ANY = PLANT_FIELDS.map((field) => `wanted.${field} is null`).join(' and ')
const IS_SAME = `(${PLANT_FIELDS.map((field) => `plants.${field} is not distinct from wanted.${field}`).join(' and ')})`

/**
 * The statements that write a group. Every process inserts in the same order, so that two of them do not wait for each other. Of
 * equal creates the first one inserts its plant. A statement returns no row if the gate is closed: then nothing was written.
 */
export const GROUP_STATEMENTS: Readonly<Record<WriteKind, string>> = {
  create: groupStatement(`
    insert into plantstore.plants (${PLANT_COLUMNS.join(', ')})
    select ${PLANT_COLUMNS.map((column) => `wanted.${column}`).join(', ')}
    from gate cross join wanted join plantstore.users on users.id = wanted.user_id
    order by wanted.user_id, wanted.id, wanted.number
    on conflict (user_id, id) do nothing
    returning user_id, id`),
  delete: groupStatement(`
    delete from plantstore.plants using gate, wanted
    where plants.user_id = wanted.user_id and plants.id = wanted.id and (${IS_ANY} or ${IS_SAME})
    returning plants.user_id, plants.id`),
}

/** The parameters of both statements. The creates beyond a quota get no user, so that the statement refuses them. */
export function parametersOf(
  { id, groups }: LedgerEntry,
  plants: readonly PlantWrite[],
  beyond: ReadonlySet<PlantWrite> = new Set(),
): Parameter[] {
  const users = plants.map((plant) => (beyond.has(plant) ? null : plant.user))
  const ids = plants.map((plant) => plant.id)
  const fields = PLANT_FIELDS.map((_, index) => plants.map(({ values }) => values[index] ?? null))
  return [id, groups, ...columns('int8', users, ids), ...columns('text', ...fields)]
}

/** The refusals of a group by the indexes of its writes, from the numbers that the statement has returned or stored. */
export function refusalsOf(kind: WriteKind, plants: readonly PlantWrite[], numbers: readonly bigint[]) {
  const refusalOf = (number: number): ErrorKind => {
    if (number > BEYOND_QUOTA) return 'quota_exceeded'
    return kind === 'create' && number < 0 ? 'token_invalid' : REFUSALS[kind]
  }
  const refused = new Map(
    numbers.map(Number).map((number) => [(Math.abs(number) - 1) % BEYOND_QUOTA, refusalOf(number)]),
  )
  const keys = new Set<string>()
  for (const [index, key] of plants.map(keyOf).entries()) {
    // Of several creates only the first can store the plant, and of several deletes only the first can find it.
    if (keys.has(key) && !refused.has(index)) refused.set(index, REFUSALS[kind])
    keys.add(key)
  }
  return refused
}
