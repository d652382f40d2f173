// Tested in test/store/postgres/round-trips.test.ts.
import { PLANT_FIELDS, type PlantValues } from '../../../domain/plant.ts'
import type { UserId } from '../../../domain/token.ts'
import { GROUP_MAX_WRITES, type WriteResults } from '../../../engine/group-queue.ts'
import type { ErrorKind } from '../../../error.ts'
import { type Expected, mayMake } from '../../preconditions.ts'
import { PLANT_COLUMNS } from '../../tables.ts'
import { arrayParameter, columns, type Parameter } from '../driver.ts'

/**
 * The kinds of writes, and why one is refused whose user exists. A put that finds what it expects is refused if another process
 * has made the plant while the statement waited. It can be repeated then. Creates and puts share a group and a statement, so a
 * new kind of write tells itself by what it has to find.
 */
const REFUSALS = { create: 'plant_exists', put: 'precondition_failed', delete: 'plant_not_found' } as const

/** A write of a plant: the values to store unless it is a delete, and what it has to find. A create finds `none`. */
export interface PlantWrite {
  readonly kind: keyof typeof REFUSALS
  readonly user: UserId
  readonly id: bigint
  readonly values?: PlantValues
  readonly expected: Expected
}

/** Tells plants apart. */
export const keyOf = ({ user, id }: { readonly user: UserId | bigint; readonly id: bigint }): string => `${user} ${id}`

/** A row of the table `writers`: the groups that were written with this id, one after the other. */
export interface LedgerEntry {
  readonly id: string
  readonly openedAtMs: number
  groups: number
}

/** The values that the stored plant must have. */
const EXPECTED = PLANT_FIELDS.map((field) => `expected_${field}`)
/** What a statement gets of each plant besides its key. `found` is what it has to find: `same` for exactly those values. */
const COLUMNS = ['found', ...PLANT_FIELDS, ...EXPECTED]
/** The parameters with the users, the ids and these columns. */
const ARRAYS = ['user_id', 'id', ...COLUMNS].map((_, index) => arrayParameter(index + 3, index < 2 ? 'int8' : 'text'))

/** Added to the number of a create or put that a quota refuses, and to that of a put that has replaced a plant. */
const OVER_QUOTA = GROUP_MAX_WRITES
const REPLACED = 2 * GROUP_MAX_WRITES

/**
 * Each group is one statement, with a row for each plant. The gate locks the writer's entry. It has no row if this group is not
 * the writer's next one, or the entry is closed. Refused writes are numbered from 1, or from -1 if the user does not exist.
 */
const groupStatement = (writes: string): string => `with gate as (
    select id from plantstore.writers where id = $1 and groups = $2 and not is_closed for update
  ), wanted as (
    select * from unnest(${ARRAYS.join(', ')})
      with ordinality as wanted (user_id, id, ${COLUMNS.join(', ')}, number)
  ), ${writes}
  update plantstore.writers set groups = groups + 1, refused = array(
    select case when wanted.user_id is null then number + ${OVER_QUOTA}
      when done.is_replaced then number + ${REPLACED}
      when not exists (select 1 from plantstore.users where users.id = wanted.user_id) then -number else number end
    from wanted left join done on done.user_id = wanted.user_id and done.id = wanted.id
    where done.id is null or done.is_replaced
  )
  where id = $1 and exists (select 1 from gate) returning refused`

const IS_SAME = PLANT_FIELDS.map((field, index) => `plants.${field} is not distinct from wanted.${EXPECTED[index]}`)
/**
 * The range holds for every write. The planner takes a range for selective, and expects one row. So it reads plants by their key
 * even if it plans while the table is small, and a plan that is kept stays right while the table grows.
 */
const IS_FOUND = `plants.user_id = wanted.user_id and plants.id = wanted.id and number between 1 and ${GROUP_MAX_WRITES}
      and wanted.found <> 'none' and (wanted.found <> 'same' or (${IS_SAME.join(' and ')}))`

/** Every process inserts in the same order, so that two of them do not wait for each other. */
const insertFrom = (source: string): string => `
    insert into plantstore.plants (${PLANT_COLUMNS.join(', ')})
    select ${PLANT_COLUMNS.map((column) => `wanted.${column}`).join(', ')}
    from ${source} join plantstore.users on users.id = wanted.user_id
    where wanted.found in ('any', 'none') order by wanted.user_id, wanted.id
    on conflict (user_id, id) do nothing`

/**
 * The gate, once a statement has locked the users in one order. No order is certain in which an update or delete locks its rows.
 * After this lock, no other such statement writes plants of these users. On Citus it also comes before the locks of shards.
 */
const READY = `locked as (
    select id from plantstore.users where id = any(${ARRAYS[0]}::int8[]) order by id for no key update
  ), ready as (
    select gate.id from gate cross join (select count(*) from locked) as locks
  )`

/**
 * The statements that write a group. One returns no row if the gate is closed: then nothing was written.
 *
 * The second makes plants, and then replaces those that it did not make.
 */
const GROUP_STATEMENTS = {
  create: groupStatement(`done as (${insertFrom('gate cross join wanted')}
    returning user_id, id, false as is_replaced)`),
  put: groupStatement(`${READY}, made as (${insertFrom('ready cross join wanted')}
    returning user_id, id
  ), replaced as (
    update plantstore.plants set ${PLANT_FIELDS.map((field) => `${field} = wanted.${field}`).join(', ')}
    from ready cross join wanted where ${IS_FOUND}
      and not exists (select 1 from made where made.user_id = wanted.user_id and made.id = wanted.id)
    returning plants.user_id, plants.id
  ), done as (
    select user_id, id, false as is_replaced from made union all select user_id, id, true from replaced
  )`),
  delete: groupStatement(`${READY}, done as (
    delete from plantstore.plants using ready, wanted where ${IS_FOUND}
    returning plants.user_id, plants.id, false as is_replaced)`),
} as const

/** The writes of a plant within a group, with their indexes. All are of one kind. */
type Run = readonly (readonly [index: number, write: PlantWrite])[]

/** The runs of a group, and the write of each that the statement gets: the first if it finds none, else the last, which stays. */
export function runsOf(plants: readonly PlantWrite[]) {
  const runs: readonly Run[] = [...Map.groupBy(plants.entries(), ([, plant]) => keyOf(plant)).values()]
  const rows = runs.flatMap((run) => run.at(run[0]?.[1].expected === 'none' ? 0 : -1)?.[1] ?? [])
  return { runs, rows }
}

/** The statement for the rows of a group, and its parameters. The rows over a quota get no user, so that it refuses them. */
export function statementOf(
  { id, groups }: LedgerEntry,
  rows: readonly PlantWrite[],
  overQuota: ReadonlySet<PlantWrite> = new Set(),
): readonly [text: string, parameters: Parameter[]] {
  const users = rows.map((row) => (overQuota.has(row) ? null : row.user))
  const ids = rows.map((row) => row.id)
  const found = rows.map(({ expected }) => (typeof expected === 'string' ? expected : 'same'))
  const fields = PLANT_FIELDS.map((_, index) => rows.map(({ values }) => values?.[index]))
  const same = PLANT_FIELDS.map((_, index) =>
    rows.map(({ expected }) => (typeof expected === 'string' ? null : expected[index])),
  )
  const isMaking = found.every((each) => each === 'none')
  const text = GROUP_STATEMENTS[rows[0]?.kind === 'delete' ? 'delete' : isMaking ? 'create' : 'put']
  return [text, [id, groups, ...columns('int8', users, ids), ...columns('text', found, ...fields, ...same)]]
}

/** The results of a group, from the numbers that its statement has returned or stored. */
export function resultsOf(runs: readonly Run[], numbers: readonly bigint[]): WriteResults {
  const byRow = new Map(numbers.map(Number).map((number) => [(Math.abs(number) - 1) % OVER_QUOTA, number]))
  const refused: [number, ErrorKind][] = []
  const returned: [number, boolean][] = []
  for (const [row, run] of runs.entries())
    for (const [at, [index, write]] of run.entries()) {
      const result = resultOf(write, byRow.get(row), at === 0)
      if (typeof result === 'string') refused.push([index, result])
      else returned.push([index, result])
    }
  return { refused, returned }
}

/** Why a write is refused, or whether it has made its plant, or as a delete has found it. */
function resultOf({ kind, expected }: PlantWrite, number: number | undefined, isFirst: boolean): ErrorKind | boolean {
  // Of several writes only the first can make the plant, or delete it.
  if (number === undefined) return isFirst || (kind === 'put' && expected === 'any' ? false : REFUSALS[kind])
  if (number > REPLACED) return false
  if (number > OVER_QUOTA) return 'quota_exceeded'
  return number < 0 && kind !== 'delete' && mayMake(expected) ? 'token_invalid' : REFUSALS[kind]
}
