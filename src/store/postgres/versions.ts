import { TOKEN_CHANGES_SEEN_WITHIN_MS, type Version } from '../../domain/store.ts'
import type { Transaction } from './connection.ts'

/** The age at which the stamp is read again, and the age from which it no longer counts. */
const RENEW_AFTER_MS = 300
const VALID_FOR_MS = TOKEN_CHANGES_SEEN_WITHIN_MS - 100

/**
 * Watches the changes that any process makes to tokens and users. Each change stores a new random number in the column
 * `tokens_stamp` of the table `counters` (see `lockTokens`). Requests start reads of that stamp but do not wait for them.
 */
export function watchTokens(readStamp: () => Promise<bigint>, monotonicMs = () => performance.now()) {
  let version: Version = 0
  /** The stamp of the current version; `undefined` after a change by this process. */
  let knownStamp: bigint | undefined
  let asOfMs = Number.NEGATIVE_INFINITY
  let reading: Promise<void> | undefined

  const read = async () => {
    const startMs = monotonicMs()
    const stamp = await readStamp()
    // This process may have made a change meanwhile. Then no stamp is known, so that this one counts as new.
    if (stamp !== knownStamp) version++
    knownStamp = stamp
    asOfMs = startMs
  }
  const renew = () => {
    // If the read fails, the stamp becomes too old. Then each request reads the token itself and reports the failure.
    reading ??= read()
      .catch(() => undefined)
      .finally(() => {
        reading = undefined
      })
    return reading
  }

  return {
    renew,
    tokens(): Version | undefined {
      const ageMs = monotonicMs() - asOfMs
      if (ageMs > RENEW_AFTER_MS) void renew()
      return ageMs < VALID_FOR_MS ? version : undefined
    },
    /** This process has changed tokens or users. */
    changed(): void {
      version++
      knownStamp = undefined
      asOfMs = Number.NEGATIVE_INFINITY
    },
  }
}

/**
 * Locks tokens and users until the transaction ends, and announces a change of them to all processes (see `watchTokens`). The
 * stamp is random. A count could repeat after the promotion of a standby that lacked the latest changes.
 */
export async function lockTokens({ query }: Transaction): Promise<void> {
  const [stamp = 0n] = crypto.getRandomValues(new BigInt64Array(1))
  await query('update plantstore.counters set tokens_stamp = $1', [stamp])
}
