import { NOBODY, type UserId } from '../../domain/token.ts'
import { AppError } from '../../error.ts'
import type { StoreDeadlines } from '../database.ts'
import type { Client, Query } from './driver.ts'
import { ATTEMPT_MIN_MS, isConflict, isConnectionLost, repeat, toAppError } from './errors.ts'

/**
 * The length to which the list of changes is cut: about 65 changes, twice as many as 100 changes a second make between two reads.
 * The row stays below 2 kB, from which on PostgreSQL stores a value apart.
 */
const CHANGES_LENGTH = 1850

/** The database ends a transaction that stands still for so long, which is less than `answerMs`: others wait for its locks. */
const STANDSTILL_MAX = '3s'

/**
 * Runs a transaction that creates or changes tokens or users, and repeats it after a conflict. The transaction locks the counters
 * first, so of all processes only one runs such a transaction at a time. A process runs its own in the order of the calls. If
 * `timeMs` has nearly passed before a transaction begins, it does not begin, and rejects with `store_busy`.
 *
 * The work calls `announce` with the user whose tokens it changes. Work that only creates need not, because no cache holds what
 * did not exist.
 */
export type ChangeTokens = <T>(
  work: (query: Query, announce: (user: UserId) => void) => Promise<T>,
  timeMs?: number,
) => Promise<T>

/**
 * Opens the transactions of this process. Each stores a new stamp and the announced user, or `NOBODY`, from which other
 * processes learn what has changed. At its end `changed` gets the user for the caches of this process. A create needs a new
 * stamp, too: if a standby without the create becomes the primary, its older stamp tells all processes that their caches are
 * wrong. `requireOpen` throws an `AppError` while the store cannot be used.
 */
export function openTokenChanges(
  client: Client,
  { repeatMs, answerMs }: StoreDeadlines,
  requireOpen: () => void,
  changed: (users: Iterable<UserId>) => void,
): ChangeTokens {
  let last: Promise<unknown> = Promise.resolve()

  return (work, timeMs = Number.POSITIVE_INFINITY) => {
    const deadlineMs = performance.now() + timeMs
    let user = NOBODY
    let mayBeCommitted = false
    const announce = (announced: UserId) => {
      user = announced
    }
    const attempt = () => {
      requireOpen()
      mayBeCommitted = false
      const leftMs = Math.min(deadlineMs - performance.now(), answerMs)
      if (leftMs < ATTEMPT_MIN_MS) throw new AppError('store_busy')
      return client.transaction(async (query) => {
        await query(`set local idle_in_transaction_session_timeout = '${STANDSTILL_MAX}'`)
        await query('select id from plantstore.counters for update')
        const result = await work(query, announce)
        const stamp = randomStamp()
        await query(ANNOUNCE, [stamp, `${stamp} ${user};`])
        mayBeCommitted = true
        return result
      }, leftMs)
    }
    const done = last
      .then(() => repeat(repeatMs, isConflict, attempt))
      .catch((error) => {
        throw toAppError(error, { outcomeIsUnknown: mayBeCommitted && isConnectionLost(error) })
      })
      .finally(() => changed([user]))
    last = done.catch(() => undefined)
    return done
  }
}

/** An older executable changes only the stamp. If the last one did, the changes before it are no longer told. */
const ANNOUNCE = `update plantstore.counters set tokens_stamp = $1, token_changes = $2 ||
  case when token_changes like tokens_stamp::text || ' %' then left(token_changes, ${CHANGES_LENGTH}) else '' end`

/** Returns a new stamp. It is random: a count could repeat after the promotion of a standby that lacked the latest changes. */
export function randomStamp(): bigint {
  const [stamp = 0n] = crypto.getRandomValues(new BigInt64Array(1))
  return stamp
}
