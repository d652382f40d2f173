import { AppError } from '../../domain/error.ts'
import type { Client, Parameter } from './connection.ts'
import { isConflict, isConnectionLost, toAppError } from './errors.ts'

/** How many reads may wait or be under way. Further ones are refused. */
export const READS_MAX = 4096
/** How long a read may take. Every request gets its answer before the shortest --idle-timeout cuts its connection. */
const READ_TIMEOUT_MS = 2000
/** How long a read of whole tables may take. Only commands wait for such reads. */
export const READ_ALL_TIMEOUT_MS = 3_600_000

/** Runs one statement that only reads. Rejects with an `AppError` if the database fails. */
export type Read = <Values>(
  text: string,
  parameters?: readonly Parameter[],
  timeoutMs?: number,
) => Promise<readonly Values[]>

/** Limits how many reads run at once, and repeats a read whose connection was lost. `requireOpen` throws an `AppError`. */
export function openReads(client: Client, requireOpen: () => void): Read {
  let reads = 0

  const query = async <Values>(text: string, parameters: readonly Parameter[], timeoutMs: number) => {
    const deadlineMs = performance.now() + timeoutMs
    try {
      return await client.query<Values>(text, parameters, timeoutMs)
    } catch (error) {
      // After a restart of the server, each connection learns of it only by a statement that fails.
      const isRepeatable = isConnectionLost(error) || isConflict(error)
      if (!isRepeatable || performance.now() >= deadlineMs) throw error
      return client.query<Values>(text, parameters, deadlineMs - performance.now())
    }
  }

  return async (text, parameters = [], timeoutMs = READ_TIMEOUT_MS) => {
    requireOpen()
    if (reads >= READS_MAX) throw new AppError('store_busy')
    reads++
    try {
      return await query(text, parameters, timeoutMs)
    } catch (error) {
      // The store may have been closed meanwhile, which is the better reason.
      requireOpen()
      throw toAppError(error)
    } finally {
      reads--
    }
  }
}
