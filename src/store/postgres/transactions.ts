import type { Client, Transaction } from './connection.ts'
import { isConflict, isConnectionLost, toAppError } from './errors.ts'
import { CONFLICT_PAUSE_MAX_MS, WRITE_TIMEOUT_MS } from './writing/writer.ts'

/** Does all of the work or nothing. Repeats it after a conflict, so `work` may run several times. */
export type Transact = <T>(work: (transaction: Transaction) => Promise<T>) => Promise<T>

/** Runs transactions one after the other, in the order in which they were asked for. `requireOpen` throws an `AppError`. */
export function openTransactions(client: Client, requireOpen: () => void): Transact {
  let last: Promise<unknown> = Promise.resolve()

  const transact: Transact = async (work) => {
    const deadlineMs = performance.now() + WRITE_TIMEOUT_MS
    for (;;) {
      requireOpen()
      try {
        return await client.transaction(work)
      } catch (error) {
        if (!isConflict(error) || performance.now() > deadlineMs) {
          throw toAppError(error, { outcomeIsUnknown: isConnectionLost(error) })
        }
        await Bun.sleep(Math.random() * CONFLICT_PAUSE_MAX_MS)
      }
    }
  }

  return (work) => {
    const done = last.then(() => transact(work))
    last = done.catch(() => undefined)
    return done
  }
}
