import { AppError, type ErrorKind } from '../../../domain/error.ts'
import type { Client, Transaction } from '../connection.ts'
import { isConflict, isConnectionLost, REPEAT_MS, repeat, toAppError } from '../errors.ts'
import { sendWithin } from './quota.ts'
import {
  BEYOND_QUOTA,
  indexOf,
  type LedgerEntry,
  type PlantWrite,
  REFUSALS,
  sender,
  type WriteKind,
} from './statements.ts'

/** How long a writer tries to learn the outcome of a group that got no answer. */
const RESOLVE_MS = 1000
/** A new entry of the ledger deletes older ones, whose processes have ended or write nothing. */
const ENTRY_MAX_AGE_MS = 3_600_000
/** A writer renews an entry of this age before a group, so that no other writer deletes it while the group is under way. */
const ENTRY_RENEW_MS = 300_000
/**
 * A writer renews its entry after so many groups. Each group leaves a dead version of the row, which PostgreSQL keeps while a
 * snapshot is older, and reads again for each later group until the entry has another id.
 */
export const ENTRY_MAX_GROUPS = 1000

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
export function openWriter(kind: WriteKind, client: Client, quotaPlants?: number): WriteGroup {
  const send = quotaPlants === undefined ? sender(kind, client) : sendWithin(quotaPlants, client)
  let entry: LedgerEntry | undefined
  /** The entry of the last group without an answer. It is deleted before the next group: its statement may still arrive. */
  let lostId = ''

  const attempt = async (plants: readonly PlantWrite[], leftMs: () => number): Promise<readonly bigint[]> => {
    if (entry !== undefined && isWorn(entry)) await renewEntry(client, entry, leftMs())
    entry ??= await client.transaction((inside) => addEntry(inside, lostId), leftMs())
    const used = entry
    try {
      const refused = await send(used, plants, leftMs)
      if (refused !== undefined) {
        used.groups++
        return refused
      }
    } catch (error) {
      if (!isConnectionLost(error)) throw error
      entry = undefined
      lostId = used.id
      return resolveOutcome(client, used, error)
    }
    // There is no entry with this id, so nothing was written. Another writer has deleted it because of its age, or no answer came
    // when it got another id.
    entry = undefined
    return attempt(plants, leftMs)
  }

  const refusalOf = (number: bigint) => {
    if (number > BEYOND_QUOTA) return 'quota_exceeded'
    return kind === 'create' && number < 0n ? 'token_invalid' : REFUSALS[kind]
  }

  return async (plants) => {
    try {
      const isRepeatable = (error: unknown) => isConflict(error) || isConnectionLost(error)
      const refused = await repeat(REPEAT_MS, isRepeatable, (leftMs) => attempt(plants, leftMs))
      return new Map(refused.map((number) => [indexOf(number), refusalOf(number)]))
    } catch (error) {
      throw toAppError(error)
    }
  }
}

async function addEntry({ query }: Transaction, lostId: string): Promise<LedgerEntry> {
  const id = crypto.randomUUID()
  const nowMs = Date.now()
  // The new entry takes the groups over, so that the sum of all entries never falls.
  const [row] = await query<[groups: bigint]>(
    `with deleted as (delete from plantstore.writers where id = $1 or opened_at_ms < $2 returning groups)
    insert into plantstore.writers (id, groups, refused, is_closed, opened_at_ms)
    select $3, coalesce(sum(groups), 0)::int8, null, false, $4 from deleted returning groups`,
    [lostId, nowMs - ENTRY_MAX_AGE_MS, id, nowMs],
  )
  const groups = Number(row?.[0])
  return { id, groups, opened: { atMs: nowMs, groups } }
}

const isWorn = ({ groups, opened }: LedgerEntry): boolean =>
  groups - opened.groups >= ENTRY_MAX_GROUPS || Date.now() - opened.atMs >= ENTRY_RENEW_MS

/** Gives an entry a new id, with the same groups. If there is no such entry any more, the next group writes nothing. */
async function renewEntry(client: Client, entry: LedgerEntry, timeoutMs: number): Promise<void> {
  const [id, atMs] = [crypto.randomUUID(), Date.now()]
  await client.query(
    'update plantstore.writers set id = $2, opened_at_ms = $3 where id = $1',
    [entry.id, id, atMs],
    timeoutMs,
  )
  entry.id = id
  entry.opened = { atMs, groups: entry.groups }
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
  const [[found, refused] = []] = await repeat(RESOLVE_MS, () => true, close).catch((cause) => {
    throw new AppError('store_failed', { outcomeIsUnknown: true, cause })
  })
  // The database may now be a standby that was behind. Then it lacks earlier groups, too.
  if (found !== undefined && Number(found) <= groups) throw lost
  if (Number(found) !== groups + 1) throw new AppError('store_failed', { outcomeIsUnknown: true, cause: lost })
  return refused ?? []
}
