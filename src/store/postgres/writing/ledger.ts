import { AppError } from '../../../domain/error.ts'
import type { Client, Transaction } from '../connection.ts'

/** How long the ledger tries to learn the outcome of a group, and how long it pauses between two attempts. */
const RESOLVE_TIMEOUT_MS = 1000
const RESOLVE_RETRY_MS = 20
/** How long deleting an entry may take. */
const LEAVE_TIMEOUT_MS = 500
/** A writer replaces its entry after this time. It also deletes much older ones, whose processes ended without doing so. */
const ENTRY_MAX_AGE_MS = 86_400_000
const ABANDONED_AFTER_MS = 7 * ENTRY_MAX_AGE_MS

/** A writer's row of the table `writers`. `groups` is the number of groups that it has written. */
export interface LedgerEntry {
  readonly id: string
  groups: number
  readonly openedAtMs: number
}

/**
 * The ledger is the table `writers`. The statement that writes a group also counts the group in the writer's entry, and
 * stores which plants it refused. If a connection is lost before the answer, the entry tells whether the group was written.
 */
export function openLedger(client: Client) {
  let entry: LedgerEntry | undefined
  /** The entry of the last group without an answer. It is deleted before the next group: its statement may still arrive. */
  let closedId = ''

  /** Deletes the entry. If that fails, another writer deletes it when it is old. */
  const leave = async () => {
    const id = entry?.id
    entry = undefined
    if (id === undefined) return
    const query = client.query('delete from plantstore.writers where id = $1', [id], LEAVE_TIMEOUT_MS)
    await query.catch(() => undefined)
  }

  return {
    /** The writer's entry. Adds one if it has none. */
    async entry(timeoutMs: number): Promise<LedgerEntry> {
      entry ??= await client.transaction((transaction) => addEntry(transaction, closedId), timeoutMs)
      return entry
    },
    /** The database no longer has the entry: the next group needs another one. */
    forget(): void {
      entry = undefined
    },
    /** Deletes an entry that is old. */
    async leaveIfOld(): Promise<void> {
      if (entry !== undefined && performance.now() - entry.openedAtMs > ENTRY_MAX_AGE_MS) await leave()
    },
    leave,
    /**
     * Learns the outcome of a group that got no answer, as `sendGroup` resolves to it. It closes the entry first: a statement
     * that arrives later then writes nothing. Closing is a write too, so the group is durable if this resolves.
     */
    async resolve({ id, groups }: LedgerEntry, cause: unknown): Promise<readonly bigint[] | undefined> {
      const deadlineMs = performance.now() + RESOLVE_TIMEOUT_MS
      let reason = cause
      entry = undefined
      closedId = id
      while (performance.now() < deadlineMs) {
        try {
          const [row] = await client.query<[groups: bigint, refused: bigint[] | null]>(
            'update plantstore.writers set is_closed = true where id = $1 returning groups, refused',
            [id],
            deadlineMs - performance.now(),
          )
          if (row === undefined) break
          return Number(row[0]) === groups ? undefined : (row[1] ?? [])
        } catch (error) {
          // The error is about this statement and not about the group. The server may be a standby, or its disk full.
          reason = error
        }
        await Bun.sleep(RESOLVE_RETRY_MS)
      }
      throw new AppError('store_failed', { outcomeIsUnknown: true, cause: reason })
    },
  }
}

async function addEntry({ query }: Transaction, closedId: string): Promise<LedgerEntry> {
  const added = { id: crypto.randomUUID(), groups: 0, openedAtMs: performance.now() }
  const abandonedMs = Date.now() - ABANDONED_AFTER_MS
  await query('delete from plantstore.writers where id = $1 or opened_at_ms < $2', [closedId, abandonedMs])
  await query(
    'insert into plantstore.writers (id, groups, refused, is_closed, opened_at_ms) values ($1, 0, null, false, $2)',
    [added.id, Date.now()],
  )
  return added
}
