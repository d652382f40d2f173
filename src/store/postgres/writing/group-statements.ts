import { PLANT_FIELDS, type PlantValues } from '../../../domain/plant.ts'
import type { UserId } from '../../../domain/token.ts'
import { FIELD_COLUMNS, PLANT_COLUMNS } from '../../rows.ts'
import type { Client, Parameter } from '../connection.ts'
import type { LedgerEntry } from './ledger.ts'

/** The two kinds of writes. A group holds writes of one kind. */
export const WRITE_KINDS = ['create', 'delete'] as const
export type WriteKind = (typeof WRITE_KINDS)[number]

/** A plant to create or delete. A delete uses only its key, the user and the id, and has no values. */
export interface PlantWrite {
  readonly user: UserId
  readonly id: bigint
  readonly values: PlantValues
}

/** Locks the writer's row in the ledger. It has no row if this group is not the writer's next one, or the writer is closed. */
const GATE = `gate as (
    select id from plantstore.writers where id = $1 and groups = $2 and not is_closed for update
  )`
const RECORD = `update plantstore.writers set groups = groups + 1, refused = array(
    select wanted.number from wanted left join done on done.user_id = wanted.user_id and done.id = wanted.id
    where done.id is null order by wanted.number
  )
  where id = (select id from gate) returning refused`

const FIELD_ARRAYS = PLANT_FIELDS.map((_, index) => `$${index + 5}::text[]`).join(', ')

/** Each group is one statement, and so one transaction. The keys of a group all differ. */
const STATEMENTS: Readonly<Record<WriteKind, string>> = {
  // Every process inserts in the same order, so that two of them do not wait for each other.
  create: `with ${GATE}, wanted as (
    select * from unnest($3::int8[], $4::int8[], ${FIELD_ARRAYS}) with ordinality
      as wanted (user_id, id, ${FIELD_COLUMNS}, number)
  ), done as (
    insert into plantstore.plants (${PLANT_COLUMNS.join(', ')})
    select ${PLANT_COLUMNS.map((column) => `wanted.${column}`).join(', ')}
    from gate cross join wanted join plantstore.users on users.id = wanted.user_id
    order by wanted.user_id, wanted.id
    on conflict (user_id, id) do nothing
    returning user_id, id
  ) ${RECORD}`,
  delete: `with ${GATE}, wanted as (
    select * from unnest($3::int8[], $4::int8[]) with ordinality as wanted (user_id, id, number)
  ), done as (
    delete from plantstore.plants using gate, wanted
    where plants.user_id = wanted.user_id and plants.id = wanted.id
    returning plants.user_id, plants.id
  ) ${RECORD}`,
}

/** A group on its way to the database. */
interface Group {
  readonly kind: WriteKind
  readonly plants: readonly PlantWrite[]
  readonly entry: LedgerEntry
}

/**
 * Writes a group and counts it in the ledger. Resolves to the numbers of the plants that were refused, counted from 1.
 * Resolves to `undefined` if the ledger does not take the group: then nothing was written.
 */
export async function sendGroup(
  { query, column }: Client,
  { kind, plants, entry }: Group,
  timeoutMs: number,
): Promise<readonly bigint[] | undefined> {
  const users = plants.map(({ user }) => user)
  const ids = plants.map(({ id }) => id)
  const parameters: Parameter[] = [entry.id, entry.groups, column(users, 'int8'), column(ids, 'int8')]
  if (kind === 'create') {
    for (const index of PLANT_FIELDS.keys()) {
      const texts = plants.map(({ values }) => values[index] ?? null)
      parameters.push(column(texts, 'text'))
    }
  }
  const [row] = await query<[refused: bigint[]]>(STATEMENTS[kind], parameters, timeoutMs)
  return row?.[0]
}
