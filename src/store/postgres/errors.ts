// Tested in test/store/postgres/conflicts.test.ts.
import { describeAddress, type PostgresAddress } from '../../database-url.ts'
import { storeUnusable } from '../../engine/errors.ts'
import { AppError, codeOf, readFailure } from '../../error.ts'
import { AnswerTimeout, sqlState } from './driver.ts'

/** No attempt begins with less time than this, because it would hardly end in time. */
export const ATTEMPT_MIN_MS = 300
/** The longest pause before another attempt. The pause is random, so that two processes do not meet again. */
const PAUSE_MAX_MS = 20

/**
 * The meaning of SQLSTATEs (https://www.postgresql.org/docs/current/errcodes-appendix.html), and of other codes. After `lost` the
 * outcome of a statement is unknown, and after any other error it has done nothing. A server that was `unreached` may be reached
 * later. One that `refused` the connection does so with these options.
 */
const MEANINGS = [
  ['conflict', /^(?:40001|40P01|23503)$/],
  ['busy', /^(?:53200|53300|53400|55P03|57014|25P0[34])$/],
  ['full', /^(?:53100|25006)$/],
  ['unsupported', /^(?:0A000|42883)$/],
  ['unprepared', /^(?:42P05|26000)$/],
  ['unreached', /^(?:57P03|ERR_POSTGRES_CONNECTION_(?:REFUSED|FAILED))$/],
  ['lost', /^(?:08\w{3}|40003|57P0[1245]|ERR_POSTGRES_CONNECTION_\w+)$/],
  ['refused', /^(?:28\w{3}|3D000|ERR_POSTGRES_(?:TLS_|CHANNEL_BINDING_|\w*AUTHENTICATION)\w*)$/],
  // Codes of OpenSSL, of the check of the host name, and of a certificate or password file that cannot be used.
  ['refused', /^(?:ENOENT|EACCES|EISDIR|(?:ERR_(?:OSSL|TLS)|CERT|UNABLE|DEPTH|SELF|HOSTNAME|INVALID)_\w+)$/],
  ['bug', /^(?:22|23|42(?!5|P01))\w+$/],
] as const

function meaningOf(error: unknown) {
  if (error instanceof AnswerTimeout) return 'lost'
  const state = sqlState(error)
  const found = MEANINGS.find(([, pattern]) => pattern.test(state || codeOf(error)))
  return found?.[0] ?? (state === '' ? 'bug' : 'failed')
}

/** Whether a statement conflicted with another transaction. It can be repeated. */
export const isConflict = (error: unknown): boolean => meaningOf(error) === 'conflict'

/** Whether a connection ended before the answer came. */
export const isConnectionLost = (error: unknown): boolean => meaningOf(error) === 'lost'

/** Whether a read can be repeated, and a write whose outcome is known. */
export const isRepeatable = (error: unknown): boolean => isConflict(error) || isConnectionLost(error)

/** Whether a later attempt may succeed with the same options. The server may be down, starting, full or busy. */
export const isTemporary = (error: unknown): boolean =>
  ['conflict', 'busy', 'full', 'unreached', 'lost'].includes(meaningOf(error))

/**
 * Attempts something for this time, while it fails with errors after which it can be repeated. One more attempt follows if a
 * session had lost a statement, or refused a password, whose file may have changed since.
 */
export async function repeat<T>(
  timeMs: number,
  isRepeatable: (error: unknown) => boolean,
  attempt: (leftMs: () => number) => Promise<T>,
): Promise<T> {
  const deadlineMs = performance.now() + timeMs
  const leftMs = () => deadlineMs - performance.now()
  let again = 0
  for (;;) {
    try {
      return await attempt(leftMs)
    } catch (error) {
      const mayRepeat = isRepeatable(error) || (/^(?:28P01|42P05|26000)$/.test(sqlState(error)) && again++ === 0)
      if (!mayRepeat || leftMs() < ATTEMPT_MIN_MS) throw error
    }
    await Bun.sleep(Math.random() * PAUSE_MAX_MS)
  }
}

/** Translates an error of the database or the driver. Any other error is a bug and stays as it is. */
export function toAppError(error: unknown, { outcomeIsUnknown = false } = {}): unknown {
  const meaning = meaningOf(error)
  if (error instanceof AppError || meaning === 'bug') return error
  if (meaning === 'conflict' || meaning === 'busy') return new AppError('store_busy', { cause: error })
  if (meaning === 'full') return new AppError('store_full', { cause: error })
  return new AppError('store_failed', { message: PROBLEMS[meaning] ?? '', outcomeIsUnknown, cause: error })
}

const PROBLEMS: Readonly<Record<string, string>> = {
  unsupported: 'The database lacks what this needs, nothing was stored: see docs/explanation/tested.md#databases.',
  unprepared: 'Prepared statements get lost, nothing was stored: behind a pooler, use --database-prepare false.',
}

/** Translates an error that keeps a store from being opened. */
export function toOpenError(address: PostgresAddress, error: unknown): AppError {
  if (error instanceof AppError) return error
  const [problem, advice] = [isTemporary(error) ? 'reached' : 'used', PROBLEMS[meaningOf(error)] ?? '']
  const message = `The database ${describeAddress(address)} cannot be ${problem}: ${reasonOf(error)}. ${advice}`
  return storeUnusable(message.trim(), error)
}

const reasonOf = (error: unknown): string => {
  if (!(error instanceof Error)) return String(error)
  // A file with the password or with certificates.
  if ('path' in error) return `the file ${error.path} cannot be read, because ${readFailure(error)}`
  return error.message.replace(/\.$/, '')
}
