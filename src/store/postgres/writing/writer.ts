import { AppError } from '../../../domain/error.ts'
import type { Client } from '../connection.ts'
import { isConflict, isConnectionLost, toAppError } from '../errors.ts'
import { type PlantWrite, sendGroup, type WriteKind } from './group-statements.ts'
import { openLedger } from './ledger.ts'

/** How long a write or a transaction may be repeated after conflicts and lost connections. */
export const WRITE_TIMEOUT_MS = 2000
/** No attempt begins with less time than this, because it would hardly end in time. */
const ATTEMPT_MIN_MS = 300
/** The longest pause before a conflict is tried again. The pause is random, so that two processes do not meet again. */
export const CONFLICT_PAUSE_MAX_MS = 20

/** Writes groups of one kind, one group at a time. */
export interface Writer {
  /**
   * Writes a group durably, or nothing of it. Resolves to the plants that were refused: a plant to create exists already or
   * its user does not, or a plant to delete does not exist. Rejects with an `AppError`.
   */
  write(plants: readonly PlantWrite[]): Promise<readonly PlantWrite[]>
  /** Closes its connection. */
  close(): Promise<void>
}

/** `client` belongs to this writer alone, and has one connection. */
export function openWriter(kind: WriteKind, client: Client): Writer {
  const ledger = openLedger(client)

  /** Resolves to `undefined` if nothing was written and another attempt may succeed. */
  const attempt = async (plants: readonly PlantWrite[], deadlineMs: number) => {
    const entry = await ledger.entry(deadlineMs - performance.now()).catch((error) => {
      if (!isConnectionLost(error)) throw error
      return undefined
    })
    if (entry === undefined) return undefined
    try {
      const refused = await sendGroup(client, { kind, plants, entry }, deadlineMs - performance.now())
      // Another writer has deleted the entry because of its age.
      if (refused === undefined) ledger.forget()
      else entry.groups++
      return refused
    } catch (error) {
      if (!isConnectionLost(error)) throw error
      return ledger.resolve(entry, error)
    }
  }

  return {
    async write(plants) {
      const deadlineMs = performance.now() + WRITE_TIMEOUT_MS
      const isLate = () => performance.now() > deadlineMs - ATTEMPT_MIN_MS
      await ledger.leaveIfOld()
      for (;;) {
        try {
          const refused = await attempt(plants, deadlineMs)
          if (refused !== undefined) return refused.flatMap((number) => plants[Number(number) - 1] ?? [])
          if (isLate()) throw new AppError('store_failed', { cause: 'connections are lost again and again' })
        } catch (error) {
          if (!isConflict(error) || isLate()) throw toAppError(error)
        }
        await Bun.sleep(Math.random() * CONFLICT_PAUSE_MAX_MS)
      }
    },
    async close() {
      await ledger.leave()
      await client.close()
    },
  }
}
