import { AppError, type ErrorKind } from '../../../domain/error.ts'
import type { Client, Transaction } from '../driver.ts'
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
/** A writer uses no entry of this age, so that no other writer deletes it while a group is under way. */
const ENTRY_MAX_USE_MS = 300_000
/**
 * A writer replaces its entry after so many groups. Each group leaves a dead version of the row, which PostgreSQL keeps while a
 * snapshot is older, and reads again for each later group with the same id.
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
  /** The entry of the next group, unless it is worn or a group with it got no answer. */
  let entry = NO_ENTRY

  const attempt = async (plants: readonly PlantWrite[], leftMs: () => number): Promise<readonly bigint[]> => {
    const used = isWorn(entry) ? await client.transaction((inside) => replaceEntry(inside, entry.id), leftMs()) : entry
    entry = used
    try {
      const refused = await send(used, plants, leftMs)
      if (refused !== undefined) {
        used.groups++
        return refused
      }
    } catch (error) {
      if (!isConnectionLost(error)) throw error
      entry = { ...NO_ENTRY, id: used.id }
      return resolveOutcome(client, used, error)
    }
    // Another writer has deleted the entry because of its age, so nothing was written.
    entry = NO_ENTRY
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

/** Stands for no entry, or with an id for one that no group may use any more. It is worn. */
const NO_ENTRY: LedgerEntry = { id: '', openedAtMs: Number.NEGATIVE_INFINITY, groups: 0 }

const isWorn = ({ groups, openedAtMs }: LedgerEntry): boolean =>
  groups >= ENTRY_MAX_GROUPS || Date.now() - openedAtMs >= ENTRY_MAX_USE_MS

/** Adds an entry. Deletes the writer's last one, whose latest statement may still arrive, and those of others that are too old. */
async function replaceEntry({ query }: Transaction, lastId: string): Promise<LedgerEntry> {
  const [id, openedAtMs] = [crypto.randomUUID(), Date.now()]
  await query('delete from plantstore.writers where id = $1 or opened_at_ms < $2', [
    lastId,
    openedAtMs - ENTRY_MAX_AGE_MS,
  ])
  await query(
    'insert into plantstore.writers (id, groups, refused, is_closed, opened_at_ms) values ($1, 0, null, false, $2)',
    [id, openedAtMs],
  )
  return { id, openedAtMs, groups: 0 }
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
