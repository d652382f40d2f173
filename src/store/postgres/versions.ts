import { TOKEN_CHANGES_SEEN_WITHIN_MS, type Version } from '../../domain/store.ts'

/** How old what is known may be before it is asked for anew, and before it does not count any more. */
const RENEW_AFTER_MS = 300
const VALID_FOR_MS = TOKEN_CHANGES_SEEN_WITHIN_MS - 100

/** What is known of changes of tokens, by whomever. */
export type TokenVersions = ReturnType<typeof watchTokens>

/**
 * Knows as of when tokens and users are what they were: the database is asked while requests come, and they do not wait
 * for it. An answer that is not fresh counts for nothing.
 */
export function watchTokens(readStamp: () => Promise<bigint>, monotonicMs: () => number) {
  let version: Version = 0
  let stamp: bigint | undefined
  let asOfMs = Number.NEGATIVE_INFINITY
  let asking: Promise<void> | undefined

  const ask = async () => {
    const askedAtMs = monotonicMs()
    const read = await readStamp()
    // After a change here, be it meanwhile, no stamp is known: whatever this is, it is another one.
    if (read !== stamp) version++
    stamp = read
    asOfMs = askedAtMs
  }
  const renew = () => {
    // What cannot be asked makes what is known grow old: then requests ask for themselves, and tell what is wrong.
    asking ??= ask()
      .catch(() => undefined)
      .finally(() => {
        asking = undefined
      })
    return asking
  }

  return {
    renew,
    tokens(): Version | undefined {
      const ageMs = monotonicMs() - asOfMs
      if (ageMs > RENEW_AFTER_MS) void renew()
      return ageMs < VALID_FOR_MS ? version : undefined
    },
    /** Tokens or users were changed here. */
    changed(): void {
      version++
      stamp = undefined
      asOfMs = Number.NEGATIVE_INFINITY
    },
  }
}
