import { AppError, type ErrorKind } from '../../../domain/error.ts'
import { PLANT_FIELDS, type PlantValues } from '../../../domain/plant.ts'
import type { UserId } from '../../../domain/token.ts'
import { FIELD_COLUMNS, PLANT_COLUMNS } from '../../rows.ts'
import type { Client, Transaction } from '../connection.ts'
import { isConflict, isConnectionLost, REPEAT_MS, repeat, toAppError } from '../errors.ts'

/** How long a writer tries to learn the outcome of a group that got no answer. */
const RESOLVE_MS = 1000
/** A new entry of the ledger deletes much older ones. Most of their processes have ended; the others add new ones. */
const ENTRY_MAX_AGE_MS = 7 * 86_400_000

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
interface LedgerEntry {
  readonly id: string
  groups: number
}

/**
 * Writes a group durably, or nothing of it. Resolves to the refusals, by the indexes of their writes. If a plant is in the group
 * several times, all of its writes get the result of the first one. Rejects with an `AppError`.
 */
export type WriteGroup = (plants: readonly PlantWrite[]) => Promise<ReadonlyMap<number, ErrorKind>>

/**
 * Writes groups of one kind, one group at a time. `client` belongs to this writer alone, and has one connection.
 *
 * The ledger is the table `writers`. The statement that writes a group also counts the group in the writer's entry, and stores
 * which writes it refused. If a connection is lost before the answer, the entry tells whether the group was written.
 */
export function openWriter(kind: WriteKind, client: Client): WriteGroup {
  let entry: LedgerEntry | undefined
  /** The entry of the last group without an answer. It is deleted before the next group: its statement may still arrive. */
  let lostId = ''

  const attempt = async (plants: readonly PlantWrite[], leftMs: () => number): Promise<readonly bigint[]> => {
    entry ??= await client.transaction((inside) => addEntry(inside, lostId), leftMs())
    const used = entry
    try {
      const [row] = await client.query<[refused: bigint[]]>(
        STATEMENTS[kind],
        [used.id, used.groups, ...columnsOf(plants, client)],
        leftMs(),
      )
      if (row !== undefined) {
        used.groups++
        return row[0]
      }
    } catch (error) {
      if (!isConnectionLost(error)) throw error
      entry = undefined
      lostId = used.id
      return resolveOutcome(client, used, error)
    }
    // Another writer has deleted the entry because of its age, so nothing was written.
    entry = undefined
    return attempt(plants, leftMs)
  }

  const refusalOf = (number: bigint) => (kind === 'create' && number < 0n ? 'token_invalid' : REFUSALS[kind])

  return async (plants) => {
    try {
      const isRepeatable = (error: unknown) => isConflict(error) || isConnectionLost(error)
      const refused = await repeat(REPEAT_MS, isRepeatable, (leftMs) => attempt(plants, leftMs))
      return new Map(refused.map((number) => [Math.abs(Number(number)) - 1, refusalOf(number)]))
    } catch (error) {
      throw toAppError(error)
    }
  }
}

async function addEntry({ query }: Transaction, lostId: string): Promise<LedgerEntry> {
  const id = crypto.randomUUID()
  const nowMs = Date.now()
  await query('delete from plantstore.writers where id = $1 or opened_at_ms < $2', [lostId, nowMs - ENTRY_MAX_AGE_MS])
  await query(
    'insert into plantstore.writers (id, groups, refused, is_closed, opened_at_ms) values ($1, 0, null, false, $2)',
    [id, nowMs],
  )
  return { id, groups: 0 }
}

/**
 * Learns the outcome of a group that got no answer, and returns what its statement would have returned. Throws the error of
 * the lost connection if nothing was written. Closes the entry first: a statement that arrives later then writes nothing.
 * Closing is a write too, so the group is durable if this resolves.
 */
async function resolveOutcome(client: Client, { id, groups }: LedgerEntry, lost: unknown): Promise<readonly bigint[]> {
  const close = (leftMs: () => number) =>
    client.query<[groups: bigint, refused: bigint[] | null]>(
      'update plantstore.writers set is_closed = true where id = $1 returning groups, refused',
      [id],
      leftMs(),
    )
  // An error is about this statement and not about the group. The server may be a standby, or its disk full.
  const [row] = await repeat(RESOLVE_MS, () => true, close).catch((cause) => {
    throw new AppError('store_failed', { outcomeIsUnknown: true, cause })
  })
  if (row === undefined) throw new AppError('store_failed', { outcomeIsUnknown: true, cause: lost })
  if (Number(row[0]) === groups) throw lost
  return row[1] ?? []
}

const FIELD_ARRAYS = PLANT_FIELDS.map((_, index) => `$${index + 5}::text[]`).join(', ')

/**
 * Each group is one statement, and so one transaction. The gate locks the writer's entry. It has no row if this group is not
 * the writer's next one, or the entry is closed. Refused writes are numbered from 1, or from -1 if the user does not exist.
 */
const statement = (write: string): string => `with gate as (
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

const STATEMENTS: Readonly<Record<WriteKind, string>> = {
  // Every process inserts in the same order, so that two of them do not wait for each other. Of equal creates the first one
  // inserts its plant.
  create: statement(`
    insert into plantstore.plants (${PLANT_COLUMNS.join(', ')})
    select ${PLANT_COLUMNS.map((column) => `wanted.${column}`).join(', ')}
    from gate cross join wanted join plantstore.users on users.id = wanted.user_id
    order by wanted.user_id, wanted.id, wanted.number
    on conflict (user_id, id) do nothing
    returning user_id, id`),
  delete: statement(`
    delete from plantstore.plants using gate, wanted
    where plants.user_id = wanted.user_id and plants.id = wanted.id and (${IS_ANY} or ${IS_SAME})
    returning plants.user_id, plants.id`),
}

/** The keys and fields of plants, as the parameters of a statement. */
function columnsOf(plants: readonly PlantWrite[], { column }: Client) {
  const [users, ids] = [plants.map(({ user }) => user), plants.map(({ id }) => id)]
  const fields = PLANT_FIELDS.map((_, index) => plants.map(({ values }) => values[index] ?? null))
  return [column(users, 'int8'), column(ids, 'int8'), ...fields.map((texts) => column(texts, 'text'))]
}
