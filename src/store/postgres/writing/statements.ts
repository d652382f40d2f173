import { PLANT_FIELDS, type PlantValues } from '../../../domain/plant.ts'
import type { UserId } from '../../../domain/token.ts'
import { FIELD_COLUMNS, PLANT_COLUMNS } from '../../rows.ts'
import type { Client, Parameter } from '../connection.ts'

/** The two kinds of writes, and why one is refused whose user exists. */
export const REFUSALS = { create: 'plant_exists', delete: 'plant_not_found' } as const
export type WriteKind = keyof typeof REFUSALS

/** A plant to create or delete. A delete with values deletes the plant only while it has them. */
export interface PlantWrite {
  readonly user: UserId
  readonly id: bigint
  readonly values: PlantValues
}

/** A writer's row of the table `writers`. `groups` is the number of groups that it has written. */
export interface LedgerEntry {
  readonly id: string
  groups: number
}

/** Sends a group. Resolves to the numbers of the refused writes, and to `undefined` if the gate is closed: then nothing was written. */
export type SendGroup = (
  entry: LedgerEntry,
  plants: readonly PlantWrite[],
  leftMs: () => number,
) => Promise<readonly bigint[] | undefined>

/** Sends groups of a kind with the statement of that kind. */
export function sender(kind: WriteKind, client: Client): SendGroup {
  const text = kind === 'create' ? groupStatement(INSERT_PLANTS) : groupStatement(DELETE_PLANTS)
  return async (entry, plants, leftMs) => {
    const [row] = await client.query<[refused: bigint[]]>(text, parametersOf(entry, plants, client), leftMs())
    return row?.[0]
  }
}

const FIELD_ARRAYS = PLANT_FIELDS.map((_, index) => `$${index + 5}::text[]`).join(', ')

/**
 * Each group is one statement, and so one transaction. The gate locks the writer's entry. It has no row if this group is not
 * the writer's next one, or the entry is closed. Refused writes are numbered from 1, or from -1 if the user does not exist.
 */
const groupStatement = (write: string): string => `with gate as (
    select id from plantstore.writers where id = $1 and groups = $2 and not is_closed for update
  ), wanted as (
    select * from unnest($3::int8[], $4::int8[], ${FIELD_ARRAYS}) with ordinality
      as wanted (user_id, id, ${FIELD_COLUMNS}, number)
  ), done as (${write})
  update plantstore.writers set groups = groups + 1, refused = array(
    select case when exists (select 1 from plantstore.users where users.id = wanted.user_id) then number else -number end
    from wanted left join done on done.user_id = wanted.user_id and done.id = wanted.id
    where done.id is null
  )
  where id = $1 and exists (select 1 from gate) returning refused`

/** A delete without values deletes the plant whatever it is. */
const IS_ANY = PLANT_FIELDS.map((field) => `wanted.${field} is null`).join(' and ')
const IS_SAME = `(${PLANT_FIELDS.map((field) => `plants.${field} is not distinct from wanted.${field}`).join(' and ')})`

const DELETE_PLANTS = `
    delete from plantstore.plants using gate, wanted
    where plants.user_id = wanted.user_id and plants.id = wanted.id and (${IS_ANY} or ${IS_SAME})
    returning plants.user_id, plants.id`

/**
 * Every process inserts in the same order, so that two of them do not wait for each other. Of equal creates the first one
 * inserts its plant.
 */
const INSERT_PLANTS = `
    insert into plantstore.plants (${PLANT_COLUMNS.join(', ')})
    select ${PLANT_COLUMNS.map((column) => `wanted.${column}`).join(', ')}
    from gate cross join wanted join plantstore.users on users.id = wanted.user_id
    order by wanted.user_id, wanted.id, wanted.number
    on conflict (user_id, id) do nothing
    returning user_id, id`

/** The parameters of every statement. */
function parametersOf({ id, groups }: LedgerEntry, plants: readonly PlantWrite[], { column }: Client): Parameter[] {
  const [users, ids] = [plants.map(({ user }) => user), plants.map(({ id }) => id)]
  const fields = PLANT_FIELDS.map((_, index) => plants.map(({ values }) => values[index] ?? null))
  return [id, groups, column(users, 'int8'), column(ids, 'int8'), ...fields.map((texts) => column(texts, 'text'))]
}
