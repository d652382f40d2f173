import { AppError } from '../../domain/error.ts'
import type { UserId } from '../../domain/token.ts'
import type { Client } from './connection.ts'
import { isConflict, isLost, isUnreached, toAppError } from './errors.ts'

/** What is written of a plant: a delete needs its key alone. */
export interface PlantRow {
  readonly user: UserId
  readonly id: bigint
  readonly name: string
  readonly tag: string | null
}

/** The two kinds of groups. */
export type WriteKind = 'create' | 'delete'

/** How long a group may find others in its way or no answer, and how long it is then tried to learn what became of it. */
export const WRITE_TIMEOUT_MS = 2000
const RESOLVE_TIMEOUT_MS = 1000
/** No attempt begins with less time than this: it would only be given up. */
const ATTEMPT_MIN_MS = 300
const RETRY_MS = 20
/** How long the end of a writer may take. */
const LEAVE_TIMEOUT_MS = 500
/** A writer opens itself anew after this time, and removes those of processes that ended without a word. */
const WRITER_AGE_MAX_MS = 86_400_000
const FORSAKEN_AFTER_MS = 7 * WRITER_AGE_MAX_MS

const GATE = `gate as (
    select id from plantstore.writers where id = $1 and groups = $2 and not is_closed for update
  )`
const DONE = `update plantstore.writers set groups = groups + 1, refused = array(
    select wanted.place from wanted left join done on done.user_id = wanted.user_id and done.id = wanted.id
    where done.id is null order by wanted.place
  )
  where id = (select id from gate) returning refused`

/** A group is one statement, and a transaction by itself. The keys of a group are all different. */
const STATEMENTS: Readonly<Record<WriteKind, string>> = {
  // In one order for all, so that two processes do not wait for each other.
  create: `with ${GATE}, wanted as (
    select * from unnest($3::int8[], $4::int8[], $5::text[], $6::text[]) with ordinality
      as wanted (user_id, id, name, tag, place)
  ), done as (
    insert into plantstore.plants (user_id, id, name, tag)
    select wanted.user_id, wanted.id, wanted.name, wanted.tag
    from gate cross join wanted join plantstore.users on users.id = wanted.user_id
    order by wanted.user_id, wanted.id
    on conflict (user_id, id) do nothing
    returning user_id, id
  ) ${DONE}`,
  delete: `with ${GATE}, wanted as (
    select * from unnest($3::int8[], $4::int8[]) with ordinality as wanted (user_id, id, place)
  ), done as (
    delete from plantstore.plants using gate, wanted
    where plants.user_id = wanted.user_id and plants.id = wanted.id
    returning plants.user_id, plants.id
  ) ${DONE}`,
}

/** A row of `writers`: what it has written is told by its own number of groups. */
interface Session {
  readonly id: string
  groups: number
  readonly openedAtMs: number
}

/** Writes groups of one kind, one group at a time. */
export interface Writer {
  /**
   * Writes a group durably, or nothing of it. Resolves to the places of those that were refused: the plant is there
   * already, or is not there. Rejects in the store's terms.
   */
  perform(rows: readonly PlantRow[]): Promise<ReadonlySet<number>>
  /** Ends its connection. */
  close(): Promise<void>
}

/** The times of a machine: one that never jumps, and one that other machines share. */
export interface Clocks {
  readonly monotonicMs: () => number
  readonly nowMs: () => number
}

/** `client` is the writer's own, with one connection. */
export function openWriter(kind: WriteKind, client: Client, { monotonicMs, nowMs }: Clocks): Writer {
  let session: Session | undefined
  /** One that was left behind: nothing is written before it is gone, so that nothing of it can come later. */
  let lostId = ''

  const openSession = async (timeoutMs: number): Promise<Session> => {
    const opened = { id: crypto.randomUUID(), groups: 0, openedAtMs: monotonicMs() }
    await client.transaction(async ({ query }) => {
      await query('delete from plantstore.writers where id = $1 or opened_at_ms < $2', [
        lostId,
        nowMs() - FORSAKEN_AFTER_MS,
      ])
      await query(
        'insert into plantstore.writers (id, groups, refused, is_closed, opened_at_ms) values ($1, 0, null, false, $2)',
        [opened.id, nowMs()],
      )
    }, timeoutMs)
    return opened
  }
  const leaveSession = async () => {
    const id = session?.id
    session = undefined
    if (id !== undefined) await client.query('delete from plantstore.writers where id = $1', [id], LEAVE_TIMEOUT_MS)
  }

  const send = async (current: Session, rows: readonly PlantRow[], timeoutMs: number) => {
    const keys = [client.column(rows.map(userOf), 'int8'), client.column(rows.map(idOf), 'int8')]
    const texts = () => [client.column(rows.map(nameOf), 'text'), client.column(rows.map(tagOf), 'text')]
    const parameters = [current.id, current.groups, ...keys, ...(kind === 'create' ? texts() : [])]
    const [row] = await client.query<[bigint[]]>(STATEMENTS[kind], parameters, timeoutMs)
    return row && placesOf(row[0])
  }

  /**
   * Learns what became of a group whose answer was lost. From then on it can only be what it is: a statement that is still
   * on its way finds its writer closed. `undefined` means that nothing of the group was written. This is a write, too: the
   * group is as durable as it is.
   */
  const resolveLost = async (lost: Session, cause: unknown) => {
    const deadlineMs = monotonicMs() + RESOLVE_TIMEOUT_MS
    let reason = cause
    session = undefined
    lostId = lost.id
    while (monotonicMs() < deadlineMs) {
      try {
        const [row] = await client.query<[groups: bigint, refused: bigint[] | null]>(
          'update plantstore.writers set is_closed = true where id = $1 returning groups, refused',
          [lost.id],
          deadlineMs - monotonicMs(),
        )
        if (row === undefined) break
        return Number(row[0]) === lost.groups ? undefined : placesOf(row[1] ?? [])
      } catch (error) {
        // Whatever it says is said of this statement, and not of the group: a standby that is not promoted yet, no room.
        reason = error
      }
      await Bun.sleep(RETRY_MS)
    }
    throw new AppError('store_failed', { outcomeIsUnknown: true, cause: reason })
  }

  /** One attempt. `undefined` means that nothing was written, and that it is worth another one. */
  const attempt = async (rows: readonly PlantRow[], deadlineMs: number) => {
    session ??= await openSession(deadlineMs - monotonicMs()).catch((error) => {
      if (isUnreached(error) || !isLost(error)) throw error
      return undefined
    })
    if (session === undefined) return undefined
    const current = session
    try {
      const places = await send(current, rows, deadlineMs - monotonicMs())
      // The row of the writer is gone: somebody has taken it for forsaken.
      if (places === undefined) session = undefined
      else current.groups++
      return places
    } catch (error) {
      if (isUnreached(error) || !isLost(error)) throw error
      return resolveLost(current, error)
    }
  }

  return {
    async perform(rows) {
      const deadlineMs = monotonicMs() + WRITE_TIMEOUT_MS
      if (session !== undefined && monotonicMs() - session.openedAtMs > WRITER_AGE_MAX_MS) await leaveSession()
      const isLate = () => monotonicMs() > deadlineMs - ATTEMPT_MIN_MS
      for (;;) {
        try {
          const places = await attempt(rows, deadlineMs)
          if (places !== undefined) return places
          if (isLate()) throw new AppError('store_failed', { cause: 'connections are lost again and again' })
        } catch (error) {
          if (!isConflict(error) || isLate()) throw toAppError(error)
        }
        await Bun.sleep(Math.random() * RETRY_MS)
      }
    },
    async close() {
      // A row that stays is removed by others in time.
      await leaveSession().catch(() => undefined)
      await client.close()
    },
  }
}

const userOf = ({ user }: PlantRow): UserId => user
const idOf = ({ id }: PlantRow): bigint => id
const nameOf = ({ name }: PlantRow): string => name
const tagOf = ({ tag }: PlantRow): string | null => tag

const placesOf = (places: readonly bigint[]): ReadonlySet<number> => new Set(places.map((place) => Number(place) - 1))
