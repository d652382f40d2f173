// Tested in test/store/postgres/lost-connection.test.ts.
import type { GroupOutcome } from '../../../engine/group-queue.ts'
import { AppError } from '../../../error.ts'
import type { OpenOptions, StoreDeadlines } from '../../database.ts'
import type { Client, Query } from '../driver.ts'
import { isConnectionLost, isRepeatable, repeat, toAppError } from '../errors.ts'
import { findOverQuota } from './quota.ts'
import { type LedgerEntry, type PlantWrite, resultsOf, runsOf, statementOf } from './statements.ts'

type Options = Pick<OpenOptions, 'observer' | 'quotaPlants'> & { readonly deadlines: StoreDeadlines }

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
 * Returns a function that writes a group durably, or nothing of it. It takes one group at a time, and rejects with an `AppError`.
 * `client` belongs to this writer only, and has one connection. README.md says what the ledger is for.
 */
export function createGroupWriter(client: Client, { observer, quotaPlants, deadlines }: Options) {
  /** The entry of the next group, unless it must be replaced or a group with it got no answer. */
  let entry = NO_ENTRY

  const send = (used: LedgerEntry, rows: readonly PlantWrite[], leftMs: number) => {
    if (quotaPlants === undefined) return client.query<Refused>(...statementOf(used, rows), leftMs)
    return client.transaction(async (query) => {
      const overQuota = await findOverQuota(query, rows, quotaPlants)
      return query<Refused>(...statementOf(used, rows, overQuota))
    }, leftMs)
  }
  const attempt = async (rows: readonly PlantWrite[], leftMs: () => number): Promise<readonly bigint[]> => {
    const used = mustReplace(entry)
      ? await client.transaction((query) => replaceEntry(query, entry.id), leftMs())
      : entry
    entry = used
    try {
      const [row] = await send(used, rows, leftMs())
      if (row !== undefined) {
        used.groups++
        return row.refused
      }
    } catch (error) {
      if (!isConnectionLost(error)) throw error
      entry = { ...NO_ENTRY, id: used.id }
      return resolveOutcome(client, used, error)
    }
    // Another writer has deleted the entry because of its age, so nothing was written.
    entry = NO_ENTRY
    return attempt(rows, leftMs)
  }

  return async (plants: readonly PlantWrite[]): Promise<GroupOutcome> => {
    const startMs = performance.now()
    try {
      const { runs, rows } = runsOf(plants)
      const numbers = await repeat(deadlines.repeatMs, isRepeatable, (leftMs) => attempt(rows, leftMs))
      observer?.recordGroup(plants.length, performance.now() - startMs)
      return resultsOf(runs, numbers)
    } catch (error) {
      throw toAppError(error)
    }
  }
}

/** The answer to a group: the numbers of the refused writes, and of puts that have replaced a plant. */
interface Refused {
  readonly refused: readonly bigint[]
}

/** Stands for no entry, or with an id for one that no group may use any more. It must be replaced. */
const NO_ENTRY: LedgerEntry = { id: '', openedAtMs: Number.NEGATIVE_INFINITY, groups: 0 }

const mustReplace = ({ groups, openedAtMs }: LedgerEntry): boolean =>
  groups >= ENTRY_MAX_GROUPS || Date.now() - openedAtMs >= ENTRY_MAX_USE_MS

/** Adds an entry. Deletes the writer's last one, whose latest statement may still arrive, and others that are too old. */
async function replaceEntry(query: Query, lastId: string): Promise<LedgerEntry> {
  const [id, openedAtMs] = [crypto.randomUUID(), Date.now()]
  const oldestMs = openedAtMs - ENTRY_MAX_AGE_MS
  await query('delete from plantstore.writers where id = $1 or opened_at_ms < $2', [lastId, oldestMs])
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
    client.query<Partial<Refused> & { readonly groups: bigint }>(
      'update plantstore.writers set is_closed = true where id = $1 returning groups, refused',
      [id],
      leftMs(),
    )
  // An error is about this statement and not about the group. The server may be a standby, or its disk full.
  const [found] = await repeat(RESOLVE_MS, () => true, close).catch((cause) => {
    throw new AppError('store_failed', { outcomeIsUnknown: true, cause })
  })
  // The database may now be a standby that was behind. Then it lacks earlier groups, too.
  if (found !== undefined && Number(found.groups) <= groups) throw lost
  if (Number(found?.groups) !== groups + 1) throw new AppError('store_failed', { outcomeIsUnknown: true, cause: lost })
  return found?.refused ?? []
}
