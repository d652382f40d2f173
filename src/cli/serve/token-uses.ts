import { AppError } from '../../domain/error.ts'
import type { Store } from '../../domain/store.ts'
import { collectTokenUses } from '../../domain/token-use.ts'
import type { Logger } from '../../log.ts'

/** How often the server writes the uses of tokens. */
const FLUSH_EVERY_MS = 5000

/** Records uses of tokens, and writes them to the store every few seconds. A failure is logged. */
export function recordTokenUses(store: Pick<Store, 'touchTokens'>, log: Logger, nowMs: () => number) {
  const uses = collectTokenUses((lastUsedAtMs) => store.touchTokens(lastUsedAtMs), nowMs)
  const flush = async () => {
    try {
      await uses.flush()
    } catch (error) {
      // An error of a store that has failed has no cause: the failure was logged before.
      const reason = String(error instanceof AppError ? (error.cause ?? error.kind) : error)
      log.warn({ reason }, 'the last use of tokens could not be written')
    }
  }
  const timer = setInterval(() => void flush(), FLUSH_EVERY_MS)
  return { recordUse: uses.recordUse, flush, stop: () => clearInterval(timer) }
}
